"""OffsetFetch (9), versions 1-10: the committed positions of groups.

v2 null topics are all, error of the group · v3 throttle time · v5 leader epoch · v6 flexible · v7 require_stable · v8 several
groups · v9 member epoch of KIP-848 · v10 topic ids. No position: offset -1 without an error. What was committed for an earlier
topic of the same name is no position, in every version.
Errors, per group: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, and INVALID_REQUEST for what would
make the answer larger than `array_answer.MAX_ITEM_BYTES`; per partition: UNKNOWN_TOPIC_ID. A topic and a partition that
are named twice are answered once.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.array_answer import ArrayAnswer, EncodedAnswer
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.ids import NO_TOPIC_ID
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

T = TypeVar("T")

_FIRST_WITH_GROUPS: Final = 8
_FIRST_WITH_IDS: Final = 10


async def handle(
    request: OffsetFetchRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    groups: Groups,
    long_work: LongWork,
) -> OffsetFetchResponse | EncodedAnswer:
    version = context.version
    if version < _FIRST_WITH_GROUPS:
        request.topics = _named_once_at_top_level(request.topics)
        return await groups.fetch_offsets(version, request, _topic_ids(cluster))
    answer = ArrayAnswer(
        OffsetFetchResponse(), OffsetFetchResponseGroup, version, long_work.slices()
    )
    for group in request.groups:
        if answer.is_full:
            found = OffsetFetchResponseGroup(
                group_id=group.group_id, error_code=ErrorCode.INVALID_REQUEST
            )
        else:
            group.topics = _named_once(group.topics)
            found = await _fetch(group, request, version, cluster, groups)
        await answer.add(found)
    return answer.encoded()


async def _fetch(
    group: OffsetFetchRequestGroup,
    request: OffsetFetchRequest,
    version: int,
    cluster: ClusterView,
    groups: Groups,
) -> OffsetFetchResponseGroup:
    has_ids = version >= _FIRST_WITH_IDS
    unknown = _take_unknown(group, cluster) if has_ids else []
    one = OffsetFetchRequest(groups=[group], require_stable=request.require_stable)
    response = await groups.fetch_offsets(version, one, _topic_ids(cluster))
    (found,) = response.groups
    if has_ids:
        _give_ids(found, cluster)
        if found.error_code == ErrorCode.NONE:
            found.topics = [*found.topics, *map(_unknown, unknown)]
    return found


def _topic_ids(cluster: ClusterView) -> Callable[[str], UUID]:
    def topic_id_of(name: str) -> UUID:
        topic = cluster.state.topics.get(name)
        return NO_TOPIC_ID if topic is None else topic.topic_id

    return topic_id_of


def _named_once(
    topics: Sequence[OffsetFetchRequestTopics] | None,
) -> list[OffsetFetchRequestTopics] | None:
    """The same with every topic and partition once, because each stands for kilobytes in the answer."""
    if topics is None:
        return None
    once = _once(((topic.name, topic.topic_id), topic.partition_indexes) for topic in topics)
    return [
        OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=indexes)
        for (name, topic_id), indexes in once.items()
    ]


def _named_once_at_top_level(
    topics: Sequence[OffsetFetchRequestTopic] | None,
) -> list[OffsetFetchRequestTopic] | None:
    if topics is None:
        return None
    once = _once((topic.name, topic.partition_indexes) for topic in topics)
    return [
        OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
        for name, indexes in once.items()
    ]


def _once(named: Iterable[tuple[T, Iterable[int]]]) -> dict[T, list[int]]:
    merged: dict[T, dict[int, None]] = {}
    for topic, indexes in named:
        merged.setdefault(topic, {}).update(dict.fromkeys(indexes))
    return {topic: list(indexes) for topic, indexes in merged.items()}


def _take_unknown(
    group: OffsetFetchRequestGroup, cluster: ClusterView
) -> list[OffsetFetchRequestTopics]:
    """Give the topics of a request their names; those that have none are taken out and returned."""
    unknown = []
    known = []
    for asked in group.topics or ():
        topic = cluster.state.topics_by_id.get(asked.topic_id)
        if topic is None:
            unknown.append(asked)
        else:
            asked.name = topic.name
            known.append(asked)
    if group.topics is not None:
        group.topics = known
    return unknown


def _give_ids(answer: OffsetFetchResponseGroup, cluster: ClusterView) -> None:
    """Offsets of a topic that no longer exists cannot be told by id, and are left out."""
    topics = []
    for found in answer.topics:
        topic = cluster.state.topics.get(found.name)
        if topic is not None:
            found.topic_id = topic.topic_id
            topics.append(found)
    answer.topics = topics


def _unknown(asked: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=asked.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for index in asked.partition_indexes
        ],
    )
