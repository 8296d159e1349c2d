"""Produce, offsets and epochs, where clients are known to fall: docs/protocol-pitfalls.md."""

from uuid import UUID

import pytest

from headrace.client.connection import Connection
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.records.compression import Codec
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.list_offsets import ListOffsetsPartitionResponse
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.wire.messages.produce import PartitionProduceResponse, ProduceRequest
from tests.differential.requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    TIME_MS,
    batch,
    by_producer,
    list_offsets,
    produce,
)
from tests.pitfalls.conftest import Peer


def send(peer: Peer, request: ProduceRequest, version: int = 9) -> PartitionProduceResponse:
    (topic,) = peer.connection.send(request, version).responses
    (result,) = topic.partition_responses
    return result


def look_up(peer: Peer, topic: str, timestamp: int, **options: int) -> ListOffsetsPartitionResponse:
    (answer,) = peer.connection.send(list_offsets(topic, timestamp, **options), 11).topics
    (found,) = answer.partitions
    return found


def test_an_unknown_topic_id_is_told_as_such(peer: Peer) -> None:
    for topic_id in (UUID(int=99), UUID(int=0)):
        result = send(peer, produce("", batch(b"a"), topic_id=topic_id), 13)
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_clients_do_not_write_to_internal_topics(peer: Peer) -> None:
    coordinator = FindCoordinatorRequest(coordinator_keys=["a-group"])  # makes the topic
    assert not peer.connection.send(coordinator, 4).coordinators[0].error_code
    result = send(peer, produce("__consumer_offsets", batch(b"a")))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (batch(b"a")[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a" * 1_100_000), ErrorCode.MESSAGE_TOO_LARGE),
        (batch(b"a", timestamp=1 << 50), ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_one_sound_batch_and_nothing_else(peer: Peer, records: bytes, error: ErrorCode) -> None:
    assert send(peer, produce(peer.topic(), records)).error_code == error


def test_compacted_topics_want_keys(peer: Peer) -> None:
    keyless = bytes(build_batch([Record(0, TIME_MS, None, b"value")]))
    result = send(peer, produce(peer.topic(cleanup_policy="compact"), keyless))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert result.record_errors
    assert result.error_message


def test_zstd_needs_version_7(peer: Peer) -> None:
    topic = peer.topic()
    packed = batch(b"a" * 100, options=BatchOptions(codec=Codec.ZSTD))
    assert send(peer, produce(topic, packed), 6).error_code == (
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )
    assert send(peer, produce(topic, packed), 7).error_code == ErrorCode.NONE


def test_the_brokers_time_is_told_and_no_other(peer: Peer) -> None:
    stamped = send(peer, produce(peer.topic(message_timestamp_type="LogAppendTime"), batch(b"a")))
    assert stamped.log_append_time_ms > TIME_MS
    assert send(peer, produce(peer.topic(), batch(b"a"))).log_append_time_ms == -1


def test_a_retry_is_answered_with_the_first_offset(peer: Peer) -> None:
    topic = peer.topic()
    first = batch(b"a", options=by_producer(4711, 0))
    second = batch(b"b", options=by_producer(4711, 1))
    assert [send(peer, produce(topic, each)).base_offset for each in (first, second)] == [0, 1]
    again = send(peer, produce(topic, first))
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
    gap = send(peer, produce(topic, batch(b"c", options=by_producer(4711, 9))))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    newer = batch(b"d", options=by_producer(4711, 0, epoch=1))
    assert send(peer, produce(topic, newer)).error_code == ErrorCode.NONE
    fenced = send(peer, produce(topic, batch(b"e", options=by_producer(4711, 2))))
    assert fenced.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [
        (LATEST, 2),
        (EARLIEST, 0),
        (MAX_TIMESTAMP, 1),
        (EARLIEST_LOCAL, 0),
        (LATEST_TIERED, -1),
        (EARLIEST_PENDING, -1),
        (TIME_MS + 5, 1),
        (TIME_MS + 6, -1),
    ],
)
def test_special_times(peer: Peer, timestamp: int, offset: int) -> None:
    topic = peer.topic()
    send(peer, produce(topic, batch(b"a")))
    send(peer, produce(topic, batch(b"b", timestamp=TIME_MS + 5)))
    found = look_up(peer, topic, timestamp)
    assert (found.error_code, found.offset) == (ErrorCode.NONE, offset)
    if offset == -1:
        assert found.timestamp == -1


def test_an_epoch_that_is_not_yet_known_here(peer: Peer) -> None:
    found = look_up(peer, peer.topic(), LATEST, epoch=9)
    assert found.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize(("epoch", "known"), [(0, (0, 2)), (7, (-1, -1))])
def test_where_an_epoch_ended(peer: Peer, epoch: int, known: tuple[int, int]) -> None:
    topic = peer.topic()
    send(peer, produce(topic, batch(b"a", b"b")))
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    )
    (found,) = peer.connection.send(request, 4).topics[0].partitions
    assert (found.leader_epoch, found.end_offset) == known


def test_deleting_up_to_minus_one_deletes_what_is_committed(peer: Peer) -> None:
    topic = peer.topic()
    send(peer, produce(topic, batch(b"a", b"b")))
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)]
            )
        ],
        timeout_ms=1000,
    )
    (deleted,) = peer.connection.send(request, 2).topics[0].partitions
    assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.NONE, 2)
    assert look_up(peer, topic, EARLIEST).offset == 2


def test_epochs_do_not_go_down_with_a_restart() -> None:
    """Clients believe no metadata with an older epoch, for good."""

    def leader_epoch() -> int:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with Connection(host, int(port)) as connection:
            wanted = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
            return connection.send(wanted, 12).topics[0].partitions[0].leader_epoch

    with EmbeddedBroker() as broker:
        broker.create_topic("orders")
        epochs = [leader_epoch()]
        for end in (broker.stop, broker.kill, broker.stop):
            end()
            broker.start()
            epochs.append(leader_epoch())
    assert epochs == sorted(epochs)
    assert epochs[0] >= 0
