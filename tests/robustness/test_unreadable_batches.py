"""Batches with a valid checksum over garbage, once they are in a log: every API answers, and the broker lives through its upkeep.

A connection's first records are opened and refused if they are garbage, so that a well-formed batch goes before.
"""

import time
from pathlib import Path

from headrace.client.connection import Connection
from headrace.records.batch_view import HEADER_BYTES, renew_crc
from headrace.records.compression import Codec
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.robustness.bystander import Bystander
from tests.robustness.small_requests import batch_of_many
from tests.robustness.wire_calls import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    create_topic,
    fetch_request,
    produce,
)
from tests.support.headrace_process import HeadraceProcess

TOPIC_NAME, TOPIC = "unreadable", 2
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
PATIENCE_S = 60
OFTEN = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.retention.check.interval.ms": "200",
}


def garbage(codec: Codec) -> bytes:
    batch = bytearray(batch_of_many(10, codec))
    batch[HEADER_BYTES:] = b"\x99" * (len(batch) - HEADER_BYTES)
    renew_crc(batch)
    return bytes(batch)


def store_garbage(connection: Connection) -> int:
    """Produce to the topic, and make all of it a sealed segment. Returns the offset behind it."""
    produce(connection, TOPIC_NAME, [b"a well-formed record"])
    for codec in Codec:
        data = PartitionProduceData(index=0, records=garbage(codec))
        topic = TopicProduceData(name=TOPIC_NAME, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        answer = connection.send(request, PRODUCE_VERSION)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return 1 + 10 * len(Codec)


def offset_at(connection: Connection, timestamp: int) -> tuple[int, int]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name=TOPIC_NAME, partitions=[asked])
    answer = connection.send(ListOffsetsRequest(topics=[topic]), 7).topics[0].partitions[0]
    return answer.error_code, answer.offset


def read_in_every_way(connection: Connection, first: int, end: int) -> None:
    fetched = connection.send(fetch_request(TOPIC_NAME, first), FETCH_VERSION).responses[0]
    assert fetched.partitions[0].error_code == 0
    assert len(fetched.partitions[0].records or b"") > 0
    assert offset_at(connection, LATEST) == (0, end)
    assert offset_at(connection, EARLIEST) == (0, first)
    now_ms = time.time_ns() // 1_000_000
    for timestamp in (now_ms - 60_000, MAX_TIMESTAMP):
        assert offset_at(connection, timestamp)[0] in (0, ErrorCode.CORRUPT_MESSAGE)
    epoch = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=TOPIC_NAME, partitions=[epoch])]
    epochs = connection.send(OffsetForLeaderEpochRequest(topics=topics), 4).topics[0]
    assert epochs.partitions[0].error_code == 0
    described = TopicRequest(name=TOPIC_NAME, partition_indexes=[0])
    producers = connection.send(DescribeProducersRequest(topics=[described]), 0).topics[0]
    assert producers.partitions[0].error_code == 0


def delete_up_to(connection: Connection, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name=TOPIC_NAME, partitions=[partition])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=30_000)
    assert connection.send(request, 2).topics[0].partitions[0].error_code == 0


def compact(connection: Connection) -> None:
    configs = [
        AlterableConfig(name="cleanup.policy", value="compact"),
        AlterableConfig(name="segment.ms", value="1"),
    ]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=TOPIC_NAME, configs=configs)
    answer = connection.send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer.responses[0]


def test_they_harm_nobody(tmp_path: Path) -> None:
    with HeadraceProcess(tmp_path, properties=OFTEN) as broker:
        with (
            Connection("127.0.0.1", broker.port, timeout_s=PATIENCE_S) as connection,
            Bystander(broker.port, "bystander"),
        ):
            create_topic(connection, TOPIC_NAME)
            end = store_garbage(connection)
            read_in_every_way(connection, 0, end)
            delete_up_to(connection, 5)  # in the middle of a batch
            read_in_every_way(connection, 5, end)
            compact(connection)
            time.sleep(0.01)
            produce_keyed(connection)  # in a new segment, so that the cleaner reads the garbage
            wait_for_compaction(broker)
            read_in_every_way(connection, 5, end + 1)
        broker.kill()
        broker.start()
        with Connection("127.0.0.1", broker.port, timeout_s=PATIENCE_S) as connection:
            _, first = offset_at(connection, EARLIEST)  # its checkpoint may not have been written
            read_in_every_way(connection, first, end + 1)


def produce_keyed(connection: Connection) -> None:
    data = PartitionProduceData(index=0, records=batch_of_many(1, Codec.NONE))
    topic = TopicProduceData(name=TOPIC_NAME, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    answer = connection.send(request, PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == 0


def wait_for_compaction(broker: HeadraceProcess) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while f"{TOPIC_NAME}-0 compacted up to" not in broker.log_tail():
        assert time.monotonic() < deadline, broker.log_tail()
        time.sleep(0.05)
