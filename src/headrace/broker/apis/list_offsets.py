"""ListOffsets (2), versions 1-11: offsets by time.

v2 isolation level · v4 leader epochs · v6 flexible · v7 max timestamp (-3) · v8 earliest local (-4) · v9 latest tiered (-5) ·
v10 time-out · v11 earliest pending upload (-6). No time found: offset and timestamp -1 without an error.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
UNSUPPORTED_VERSION for a special timestamp that the version does not have, OFFSET_NOT_AVAILABLE (before v5
LEADER_NOT_AVAILABLE) from a new leader that does not know yet how far its predecessors had come: an end must not go back;
KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
Without tiered storage the whole log is local, nothing is tiered and nothing waits to be. A partition that is asked for twice
gets INVALID_REQUEST, once. A batch that has to be opened to find a time and is not what it claims: CORRUPT_MESSAGE.
"""

import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.partition_lookup import find_leader
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.errors import CorruptBatch, DiskFailed, LogClosed
from headrace.log.steps import Steps, run_at_once
from headrace.log.time_lookup import FoundTimestamp, first_at_or_after, with_max_timestamp
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.wire.refusal import Refusal

_logger = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_FIRST_VERSION_OF: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED: Final = 1
_NEVER_FOUND: Final = (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
_FIRST_WITH_NOT_AVAILABLE: Final = 5
_NOTHING: Final = FoundTimestamp(-1, -1, -1)


def handle(
    request: ListOffsetsRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
    long_work: LongWork,
) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
    work = _ListOffsets(request, context.version, partitions, cluster)
    is_by_time = any(
        ask.timestamp >= 0 or ask.timestamp == MAX_TIMESTAMP
        for topic in request.topics
        for ask in topic.partitions
    )
    return work.answer_in_slices(long_work) if is_by_time else work.answer()


class _ListOffsets:
    """One request."""

    __slots__ = ("_cluster", "_partitions", "_request", "_version")

    def __init__(
        self,
        request: ListOffsetsRequest,
        version: int,
        partitions: PartitionTable,
        cluster: ClusterView,
    ) -> None:
        self._request = request
        self._version = version
        self._partitions = partitions
        self._cluster = cluster

    def answer(self) -> ListOffsetsResponse:
        """The answer, where no batch has to be opened for it."""
        return _response(
            (name, run_at_once(self._partition(name, asks)))
            for name, asks in _by_partition(self._request)
        )

    async def answer_in_slices(self, long_work: LongWork) -> ListOffsetsResponse:
        """The same, where batches may have to be opened. Long work for others is done between two partitions."""
        answers = []
        slices = long_work.slices()
        for name, asks in _by_partition(self._request):
            answers.append((name, await long_work.run(self._partition(name, asks))))
            await slices.pause()
        return _response(answers)

    def _partition(
        self, topic: str, asks: Sequence[ListOffsetsPartition]
    ) -> Steps[ListOffsetsPartitionResponse]:
        if len(asks) == 1:
            return (yield from self._answer(topic, asks[0]))
        return ListOffsetsPartitionResponse(
            partition_index=asks[0].partition_index, error_code=ErrorCode.INVALID_REQUEST
        )

    def _answer(self, topic: str, ask: ListOffsetsPartition) -> Steps[ListOffsetsPartitionResponse]:
        try:
            found = yield from self._look_up(topic, ask)
        except CorruptBatch as error:
            _logger.warning(
                "%s-%d: a batch cannot be read to find the time %d: %s",
                topic,
                ask.partition_index,
                ask.timestamp,
                error,
            )
            found = Refusal(ErrorCode.CORRUPT_MESSAGE, str(error))
        if isinstance(found, Refusal):
            return ListOffsetsPartitionResponse(
                partition_index=ask.partition_index, error_code=found.error_code
            )
        return ListOffsetsPartitionResponse(
            partition_index=ask.partition_index,
            timestamp=found.timestamp,
            offset=found.offset,
            leader_epoch=found.leader_epoch,
        )

    def _look_up(self, topic: str, ask: ListOffsetsPartition) -> Steps[FoundTimestamp | Refusal]:
        if self._version < _FIRST_VERSION_OF.get(ask.timestamp, 0) or ask.timestamp < -6:
            return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {ask.timestamp}")
        partition = find_leader(
            self._partitions,
            self._cluster,
            topic,
            ask.partition_index,
            current_leader_epoch=ask.current_leader_epoch,
        )
        if isinstance(partition, Refusal):
            return partition
        read_committed = self._request.isolation_level == _READ_COMMITTED
        try:
            found = yield from _offset_at(partition, ask.timestamp, read_committed=read_committed)
        except (DiskFailed, LogClosed) as error:
            return partition.refuse_for_disk(error)
        is_at_end = found is _NOTHING and ask.timestamp not in _NEVER_FOUND
        if partition.knows_what_is_committed:
            return found
        if ask.timestamp != LATEST and not is_at_end:
            return found
        has_code = self._version >= _FIRST_WITH_NOT_AVAILABLE
        code = ErrorCode.OFFSET_NOT_AVAILABLE if has_code else ErrorCode.LEADER_NOT_AVAILABLE
        return Refusal(code, "the new leader does not know yet how much is committed")


def _by_partition(
    request: ListOffsetsRequest,
) -> list[tuple[str, list[ListOffsetsPartition]]]:
    """What is asked of each partition, with its topic's name; topics may be named several times, too."""
    grouped: dict[tuple[str, int], list[ListOffsetsPartition]] = {}
    for topic in request.topics:
        for ask in topic.partitions:
            grouped.setdefault((topic.name, ask.partition_index), []).append(ask)
    return [(name, asks) for (name, _), asks in grouped.items()]


def _response(
    answers: Iterable[tuple[str, ListOffsetsPartitionResponse]],
) -> ListOffsetsResponse:
    topics: dict[str, list[ListOffsetsPartitionResponse]] = {}
    for name, answer in answers:
        topics.setdefault(name, []).append(answer)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )


def _offset_at(
    partition: Partition, timestamp: int, *, read_committed: bool
) -> Steps[FoundTimestamp]:
    log = partition.log
    end_offset = partition.last_stable_offset if read_committed else partition.high_watermark
    match timestamp:
        case -1:
            return FoundTimestamp(-1, end_offset, partition.leader_epoch)
        case -2 | -4:
            start = log.log_start_offset
            return FoundTimestamp(-1, start, log.leader_epochs.epoch_at(start))
        case -5 | -6:
            return _NOTHING
        case -3:
            found = yield from with_max_timestamp(log)
        case _:
            found = yield from first_at_or_after(log, timestamp)
    return _NOTHING if found is None or found.offset >= end_offset else found
