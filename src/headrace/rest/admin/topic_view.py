"""Topics with their partitions and replicas as the routes show them. Blocking, over an admin client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from headrace.client.admin.acls import AclOperation
from headrace.client.admin.admin import Admin
from headrace.client.admin.partitions import FoundOffset, OffsetSpec, list_offsets
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from headrace.wire.refusal import Refused, require

_NOT_TOLD: Final = -(2**31)  # authorized operations that were not asked for


class PartitionView(NamedTuple):
    """A partition; `leader` is None while it has none."""

    topic: str
    number: int
    leader: int | None
    replicas: Sequence[int]
    isr: frozenset[int]


class TopicView(NamedTuple):
    """A topic."""

    name: str
    is_internal: bool
    partitions: Sequence[PartitionView]
    authorized_operations: Sequence[str]

    @property
    def replication_factor(self) -> int:
        """Of the first partition."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    def partition(self, number: int) -> PartitionView | None:
        """One partition, if there is one of this number."""
        return next((each for each in self.partitions if each.number == number), None)


def all_topics(admin: Admin, *, with_operations: bool = False) -> list[TopicView]:
    """Every topic, by name."""
    request = MetadataRequest(topics=None, include_topic_authorized_operations=with_operations)
    found = admin.ask_any(request).topics
    return sorted(_view(each) for each in found if each.name and not each.error_code)


def one_topic(admin: Admin, name: str, *, with_operations: bool = False) -> TopicView:
    """A topic. Raises Refused where there is none."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=with_operations,
    )
    for topic in admin.ask_any(request).topics:
        require(topic.error_code)
        return _view(topic)
    raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def edges(
    admin: Admin, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """The first offset and the offset behind the last, by partition. Raises Refused."""
    wanted = list(partitions)
    first = list_offsets(admin, wanted, OffsetSpec.EARLIEST)
    last = list_offsets(admin, wanted, OffsetSpec.LATEST)
    found = {}
    for each in wanted:
        start, end = first[each], last[each]
        if not isinstance(start, FoundOffset):
            raise Refused.of(start)
        if not isinstance(end, FoundOffset):
            raise Refused.of(end)
        found[each] = (start.offset, end.offset)
    return found


def _view(topic: MetadataResponseTopic) -> TopicView:
    name = topic.name or ""
    partitions = sorted(
        PartitionView(
            name,
            each.partition_index,
            each.leader_id if each.leader_id >= 0 else None,
            tuple(each.replica_nodes),
            frozenset(each.isr_nodes),
        )
        for each in topic.partitions
    )
    return TopicView(
        name, topic.is_internal, partitions, _operations(topic.topic_authorized_operations)
    )


def _operations(bits: int) -> list[str]:
    if bits == _NOT_TOLD:
        return []
    return [each.name for each in AclOperation if bits >> each & 1]
