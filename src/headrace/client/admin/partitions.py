"""What only a partition's leader or a replica's broker can say: offsets, deleting records, bytes on disk."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby

from headrace.client.admin.admin import Admin
from headrace.ids import TopicPartition
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.refusal import Refusal, refusal_of, require

CONSUMER = -1  # replica id of everybody who is no replica
READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class OffsetSpec(IntEnum):
    """Timestamps that mean a place in the log. The number is what goes over the wire."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOffset:
    """An offset found by ListOffsets; -1 where there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaBytes:
    """A replica in a log directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """A log directory of a broker."""

    path: str
    error: Refusal | None
    replicas: Sequence[ReplicaBytes]
    total_bytes: int
    usable_bytes: int


def list_offsets(
    admin: Admin, partitions: Iterable[TopicPartition], timestamp: int
) -> dict[TopicPartition, FoundOffset | Refusal]:
    """The first offset at or after a timestamp, or the one an `OffsetSpec` means."""
    return list_offsets_at(admin, dict.fromkeys(partitions, timestamp))


def list_offsets_at(
    admin: Admin,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = READ_UNCOMMITTED,
    patience_s: float | None = None,
) -> dict[TopicPartition, FoundOffset | Refusal]:
    """The same with a timestamp for each partition. A leader that is gone is waited for at most `patience_s`."""

    def ask(
        leader: int, wanted: list[TopicPartition]
    ) -> dict[TopicPartition, FoundOffset | Refusal]:
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=number,
                            timestamp=timestamps[TopicPartition(topic, number)],
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(wanted)
            ],
            timeout_ms=admin.timeout_ms,
        )
        answer = admin.ask_once(leader, request)
        return {
            TopicPartition(topic.name, each.partition_index): refusal_of(each.error_code)
            or FoundOffset(
                offset=each.offset, timestamp=each.timestamp, leader_epoch=each.leader_epoch
            )
            for topic in answer.topics
            for each in topic.partitions
        }

    return admin.ask_leaders(timestamps, ask, patience_s=patience_s)


def delete_records(
    admin: Admin, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | Refusal]:
    """Delete the records before an offset (-1: before the high watermark); the new low watermarks."""

    def ask(leader: int, wanted: list[TopicPartition]) -> dict[TopicPartition, int | Refusal]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=number, offset=before[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(wanted)
            ],
            timeout_ms=admin.timeout_ms,
        )
        answer = admin.ask_once(leader, request)
        found: dict[TopicPartition, int | Refusal] = {}
        for topic in answer.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                found[partition] = refusal_of(each.error_code) or each.low_watermark
        return found

    return admin.ask_leaders(before, ask)


def describe_log_dirs(admin: Admin, broker_id: int) -> list[LogDir]:
    """The log directories of a broker and the replicas in them."""
    answer = admin.ask_broker(broker_id, DescribeLogDirsRequest(topics=None))
    require(answer.error_code)
    return [
        LogDir(
            path=each.log_dir,
            error=refusal_of(each.error_code),
            replicas=[
                ReplicaBytes(
                    partition=TopicPartition(topic.name, replica.partition_index),
                    size_bytes=replica.partition_size,
                    offset_lag=replica.offset_lag,
                    is_future=replica.is_future_key,
                )
                for topic in each.topics
                for replica in topic.partitions
            ],
            total_bytes=each.total_bytes,
            usable_bytes=each.usable_bytes,
        )
        for each in answer.results
    ]


def by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[str, list[int]]]:
    """Partitions, one topic after the other: requests are built that way."""
    for topic, group in groupby(sorted(partitions), key=lambda each: each.topic):
        yield topic, [each.partition for each in group]
