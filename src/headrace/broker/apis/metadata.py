"""Metadata (3), versions 0-13: the brokers, and topics with their partitions and leaders.

v1 no topics is none, null is all (v0: none is all); rack, controller, internal topics · v2 cluster id · v3 throttle time ·
v4 auto-creation can be declined · v5 offline replicas · v6 LISTENER_NOT_FOUND · v7 leader epoch · v8 authorized
operations · v9 flexible · v10 topic ids in the answer · v11 no cluster operations any more · v12 topics asked for by id ·
v13 error of the whole.
Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST; per partition:
LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND, and in v0 REPLICA_NOT_AVAILABLE.
A topic that is created by being asked for is in the very same answer, where Kafka lets the client ask again.
"""

from collections.abc import Collection, Coroutine, Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.reachable_brokers import NO_BROKER, controller_id, reachable_brokers
from headrace.broker.cluster.topic_creation import TopicCreation
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.security.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED_FOR,
    TOPIC_OPERATIONS,
)
from headrace.controller.cluster_state import Topic
from headrace.controller.topics import name_fault
from headrace.controller.values import PartitionState
from headrace.ids import NO_TOPIC_ID
from headrace.internal_topics import INTERNAL_TOPICS
from headrace.settings.live_settings import LiveSettings
from headrace.wire.codec import Piece
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_FIRST_WITH_NULL_FOR_ALL: Final = 1
_FIRST_WITH_LISTENER_NOT_FOUND: Final = 6
_FIRST_BY_ID: Final = 12


def handle(
    request: MetadataRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    live_settings: LiveSettings,
    topic_creation: TopicCreation,
    metadata_cache: MetadataCache,
) -> MetadataResponse | list[Piece] | Coroutine[Any, Any, MetadataResponse]:
    answer = _Answer(request, context, cluster)
    topics = request.topics
    if topics is None or (not topics and context.version < _FIRST_WITH_NULL_FOR_ALL):
        return metadata_cache.body(
            cluster.state,
            context.version,
            answer.key,
            frame=lambda: answer.to(()),
            describe=answer.found,
        )
    ids = [topic.topic_id for topic in topics if topic.topic_id != NO_TOPIC_ID]
    if any(topic.name is None for topic in topics) or ids:
        if context.version < _FIRST_BY_ID or not ids:
            return _malformed(topics)
        return answer.to(map(answer.by_id, dict.fromkeys(ids)))
    names = _names(request)
    missing = [name for name in names if name not in cluster.state.topics]
    if (
        missing
        and request.allow_auto_topic_creation
        and live_settings.current.auto_create_topics_enable
        and not all(map(name_fault, missing))
    ):
        return _create_and_answer(request, context, cluster, topic_creation, missing)
    return answer.to(map(answer.by_name, names))


async def _create_and_answer(
    request: MetadataRequest,
    context: RequestContext,
    cluster: ClusterView,
    topic_creation: TopicCreation,
    missing: list[str],
) -> MetadataResponse:
    await topic_creation.create(missing)
    answer = _Answer(request, context, cluster)  # the cluster may look different by now
    return answer.to(map(answer.by_name, _names(request)))


def _names(request: MetadataRequest) -> list[str]:
    return list(dict.fromkeys(topic.name or "" for topic in request.topics or ()))


def _malformed(topics: Sequence[MetadataRequestTopic]) -> MetadataResponse:
    """An id before its time, or neither id nor name."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=topic.name or "",
                topic_id=topic.topic_id,
            )
            for topic in topics
        ],
        error_code=ErrorCode.INVALID_REQUEST,
    )


class _Answer:
    """One answer: to whom, and what it depends on."""

    __slots__ = (
        "_brokers",
        "_cluster",
        "_cluster_operations",
        "_offline",
        "_operations",
        "_reachable",
        "_version",
    )

    def __init__(
        self, request: MetadataRequest, context: RequestContext, cluster: ClusterView
    ) -> None:
        self._cluster = cluster
        self._version = context.version
        self._brokers = cluster.state.brokers
        self._reachable = reachable_brokers(cluster, context.connection)
        self._offline = cluster.state.offline_replicas()
        self._operations = (
            TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED_FOR
        )
        self._cluster_operations = (
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED_FOR
        )

    @property
    def key(self) -> tuple[object, ...]:
        """What is said of a topic depends on this too."""
        return (
            *self._reachable.items(),
            *sorted(self._brokers),
            *(broker.offline for broker in self._brokers.values() if broker.offline),
            self._operations,
            self._cluster_operations,
        )

    def to(self, topics: Iterable[MetadataResponseTopic]) -> MetadataResponse:
        """The whole answer, with these topics."""
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=self._brokers[broker_id].rack,
                )
                for broker_id, endpoint in self._reachable.items()
            ],
            cluster_id=self._cluster.cluster_id,
            controller_id=controller_id(self._cluster, self._reachable),
            topics=list(topics),
            cluster_authorized_operations=self._cluster_operations,
        )

    def by_name(self, name: str) -> MetadataResponseTopic:
        topic = self._cluster.state.topics.get(name)
        if topic is not None:
            return self.found(topic)
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if name_fault(name) is None
            else ErrorCode.INVALID_TOPIC_EXCEPTION,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=self._operations,
        )

    def by_id(self, topic_id: UUID) -> MetadataResponseTopic:
        topic = self._cluster.state.topics_by_id.get(topic_id)
        if topic is not None:
            return self.found(topic)
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
        )

    def found(self, topic: Topic) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                self._partition(index, partition, self._offline.get((topic.topic_id, index), ()))
                for index, partition in enumerate(topic.partitions)
            ],
            topic_authorized_operations=self._operations,
        )

    def _partition(
        self, index: int, partition: PartitionState, failed: Collection[int]
    ) -> MetadataResponsePartition:
        reachable = self._reachable
        leader, error = partition.leader, ErrorCode.NONE
        replicas, isr = partition.replicas, partition.isr
        offline = [each for each in replicas if each not in reachable or each in failed]
        if self._version == 0 and offline:
            # Too old to be told who is offline: it only hears of those that it can talk to.
            error = ErrorCode.REPLICA_NOT_AVAILABLE
            replicas = tuple(replica for replica in replicas if replica in reachable)
            isr = tuple(replica for replica in isr if replica in reachable)
        if leader not in reachable:
            has_other_listeners = leader in self._brokers
            error = (
                ErrorCode.LISTENER_NOT_FOUND
                if has_other_listeners and self._version >= _FIRST_WITH_LISTENER_NOT_FOUND
                else ErrorCode.LEADER_NOT_AVAILABLE
            )
            leader = NO_BROKER
        return MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=offline,
        )
