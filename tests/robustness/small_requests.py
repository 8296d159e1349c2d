"""Catalogue of small requests that ask for much.

`python -m tests.robustness.small_requests [NAME ...]` plays all entries, or some, against Headrace and against Apache Kafka, one
after the other, and prints the table of docs/operating/limits.md. `test_small_requests` says what an entry may cost others.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, Self

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected, Exchange
from headrace.errors import MalformedMessage
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    pack_header,
    renew_crc,
)
from headrace.records.compression import Codec, compress
from headrace.records.varints import append_varint
from headrace.wire.decoder_source import MAX_ELEMENTS
from headrace.wire.messages import (
    add_partitions_to_txn,
    incremental_alter_configs,
    list_transactions,
    write_txn_markers,
)
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.wire.primitives import unsigned_varint
from tests.robustness.bystander import Bystander
from tests.robustness.raw_peer import dial
from tests.robustness.wire_calls import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce
from tests.support.apache_kafka import ApacheKafka
from tests.support.headrace_process import HeadraceProcess
from tests.support.process_memory import MIB, MemoryWatch

MANY_RECORDS: Final = 1_000_000
MANY_NAMES: Final = MAX_ELEMENTS
TAKES_LITTLE_S: Final = 3.0
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
KAFKAS_HEAP: Final = "1g"  # that of its own start script
PATIENCE_S: Final = 120.0


class Cost(NamedTuple):
    """What an entry of the catalogue cost a bystander and the broker."""

    sent_bytes: int
    took_s: float
    bystander_s: float
    memory_bytes: int


class Server(Protocol):
    """A broker that runs while a `with` block does."""

    port: int

    @property
    def pid(self) -> int: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...


class Sender:
    """A client that counts what it sends and does not mind being thrown out."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sent_bytes = 0

    def ask(self, request: Any, version: int, *, times: int = 1) -> None:
        """Send a request, wait for its answer."""
        for _ in range(times):
            self.sent_bytes += len(b"".join(Exchange("greedy").ask(request, version)))
            try:
                with Connection("127.0.0.1", self.port, timeout_s=PATIENCE_S) as connection:
                    connection.send(request, version)
            except (Disconnected, MalformedMessage):
                pass  # thrown out, or answered with more than a client reads

    def throw(self, data: bytes) -> None:
        """Send bytes, take a little of what comes for a while."""
        self.sent_bytes += len(data)
        until = time.monotonic() + TAKES_LITTLE_S
        with closing(dial(self.port, receive_bytes=4096)) as peer:
            try:
                peer.sendall(data)
                peer.settimeout(TAKES_LITTLE_S)
                while peer.recv(65536) and time.monotonic() < until:
                    time.sleep(0.01)
            except OSError:
                pass

    def prepare_group(self, group_id: str) -> None:
        """Wait until the group has a coordinator that answers. That is not counted."""
        deadline = time.monotonic() + PATIENCE_S
        find = FindCoordinatorRequest(coordinator_keys=[group_id])
        fetch_offsets = OffsetFetchRequest(group_id=group_id, topics=None)
        with Connection("127.0.0.1", self.port) as connection:
            while (
                connection.send(find, 4).coordinators[0].error_code
                or connection.send(fetch_offsets, 7).error_code
            ):
                assert time.monotonic() < deadline, f"{group_id} has no coordinator"
                time.sleep(0.05)

    def topic(self, name: str, *, partitions: int = 1, **configs: str) -> None:
        """Create a topic. That is not counted."""
        pairs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=pairs
        )
        with Connection("127.0.0.1", self.port) as connection:
            connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
            time.sleep(0.3)  # Kafka answers before the partition can be written to


@cache
def batch_of_many(records: int, codec: Codec = Codec.ZSTD) -> bytes:
    """A batch of as many records as possible, of seven bytes and a little each."""
    payload = bytearray()
    for number in range(records):
        record = bytearray(2)  # attributes, timestamp
        append_varint(record, number)
        record += b"\0\1\0"  # an empty key, no value, no headers
        append_varint(payload, len(record))
        payload += record
    return _batch(bytes(payload), records, codec)


@cache
def batch_of_zeros(size: int) -> bytes:
    """A batch with one large record, and a small one on the wire."""
    record = bytearray(3) + b"\0"
    append_varint(record, size)
    record += bytes(size) + b"\0"
    payload = bytearray()
    append_varint(payload, len(record))
    return _batch(bytes(payload + record), 1, Codec.ZSTD)


def _batch(payload: bytes, records: int, codec: Codec) -> bytes:
    packed = compress(codec, payload)
    length = HEADER_BYTES - LOG_OVERHEAD + len(packed)
    now_ms = time.time_ns() // 1_000_000
    header = BatchHeader(
        0, length, -1, MAGIC, 0, codec, records - 1, now_ms, now_ms, -1, -1, -1, records
    )
    batch = bytearray(pack_header(header)) + packed
    renew_crc(batch)
    return bytes(batch)


def _produce(topic: str, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        acks=-1,
        timeout_ms=60_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


# ---- the catalogue


def records_to_a_compacted_topic(sender: Sender) -> None:
    """a million records to a compacted topic"""
    sender.topic("compacted", cleanup_policy="compact")
    sender.ask(_produce("compacted", batch_of_many(MANY_RECORDS)), PRODUCE_VERSION)


def records_packed_anew(sender: Sender) -> None:
    """the same to a topic that wants another codec"""
    sender.topic("repacked", compression_type="lz4", max_message_bytes="20000000")
    sender.ask(_produce("repacked", batch_of_many(MANY_RECORDS)), PRODUCE_VERSION)


def records_looked_up_by_time(sender: Sender) -> None:
    """ListOffsets for a time over such a batch"""
    sender.topic("timed")
    sender.ask(
        _produce("timed", _claiming_the_future(batch_of_many(MANY_RECORDS))), PRODUCE_VERSION
    )
    ask = ListOffsetsPartition(partition_index=0, timestamp=time.time_ns() // 1_000_000 + 600_000)
    sender.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="timed", partitions=[ask])]), 7)


def _claiming_the_future(batch: bytes) -> bytes:
    claiming = bytearray(batch)
    claiming[35:43] = (time.time_ns() // 1_000_000 + 1_200_000).to_bytes(8)
    renew_crc(claiming)
    return bytes(claiming)


def bytes_to_a_compacted_topic(sender: Sender) -> None:
    """a record of 60 MiB of zeros to a compacted topic"""
    sender.topic("zeros", cleanup_policy="compact")
    sender.ask(_produce("zeros", batch_of_zeros(60 * MIB)), PRODUCE_VERSION)


def pieces_of_pipelined_fetches(sender: Sender) -> None:
    """500 pipelined Fetches of 4.5 MB each, by a peer that takes little"""
    sender.topic("large")
    with Connection("127.0.0.1", sender.port) as connection:
        for _ in range(5):
            produce(connection, "large", [bytes(900_000)])
    exchange = Exchange("greedy")
    sender.throw(
        b"".join(
            b"".join(exchange.ask(fetch_request("large", 0), FETCH_VERSION)) for _ in range(500)
        )
    )


def tags_of_a_header(sender: Sender) -> None:
    """4 million tagged fields in a header"""
    sender.throw(_with_tags(header=True))


def tags_of_a_body(sender: Sender) -> None:
    """4 million tagged fields in a body"""
    sender.throw(_with_tags(header=False))


def _with_tags(*, header: bool) -> bytes:
    count = 4_000_000
    tags = unsigned_varint(count) + b"\x63\0" * count
    start = bytes.fromhex("0003 000c 00000007 ffff")  # Metadata v12, without a client id
    body = bytes.fromhex("01 00 00")  # no topics, nothing to create, nothing about operations
    frame = start + tags + body + b"\0" if header else start + b"\0" + body + tags
    return len(frame).to_bytes(4) + frame


def names_of_groups(sender: Sender) -> None:
    """DescribeGroups of 100,000 groups"""
    sender.ask(DescribeGroupsRequest(groups=[""] * MANY_NAMES), 5)


def names_of_topics(sender: Sender) -> None:
    """Metadata of 100,000 topics that do not exist"""
    topics = [MetadataRequestTopic(name="x")] * MANY_NAMES
    sender.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 8)


def sessions_of_fetches(sender: Sender) -> None:
    """ten fetch sessions of 100,000 partitions"""
    asks = [FetchPartition(partition=number) for number in range(MANY_NAMES - 1)]
    request = FetchRequest(
        max_wait_ms=0,
        session_epoch=0,
        max_bytes=1,
        topics=[FetchTopic(topic="nowhere", partitions=asks)],
    )
    sender.ask(request, FETCH_VERSION, times=10)


def groups_with_many_protocols(sender: Sender) -> None:
    """ten members with 100,000 protocols"""
    protocols = [
        JoinGroupRequestProtocol(name=str(number), metadata=b"") for number in range(MANY_NAMES)
    ]
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=6000, protocol_type="consumer", protocols=protocols
    )
    sender.ask(request, 3, times=10)


def names_of_coordinators(sender: Sender) -> None:
    """FindCoordinator for 100,000 groups"""
    sender.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"] * MANY_NAMES), 4)


def answers_about_a_broker(sender: Sender) -> None:
    """DescribeConfigs of one broker, named 2,000 times, with synonyms and documentation"""
    broker = DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=None
    )
    request = DescribeConfigsRequest(
        resources=[broker] * 2000, include_synonyms=True, include_documentation=True
    )
    sender.ask(request, 4)


def answers_about_groups(sender: Sender) -> None:
    """DescribeConfigs of 20,000 groups that do not exist, with synonyms and documentation"""
    groups = [
        DescribeConfigsResource(
            resource_type=GROUP, resource_name=str(number), configuration_keys=None
        )
        for number in range(20_000)
    ]
    request = DescribeConfigsRequest(
        resources=groups, include_synonyms=True, include_documentation=True
    )
    sender.ask(request, 4)


def answers_about_offsets(sender: Sender) -> None:
    """OffsetFetch of all offsets of a group, named 1,000 times; it has 100 with 4 kB of metadata each"""
    sender.topic("committed", partitions=100)
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=number, committed_offset=0, committed_metadata="x" * 4000
        )
        for number in range(100)
    ]
    topic = OffsetCommitRequestTopic(name="committed", partitions=partitions)
    sender.prepare_group("g")
    with Connection("127.0.0.1", sender.port) as connection:
        answer = connection.send(OffsetCommitRequest(group_id="g", topics=[topic]), 7)
    assert not any(each.error_code for each in answer.topics[0].partitions), answer
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    sender.ask(OffsetFetchRequest(groups=[group] * 1000), 8)


def answers_about_a_member(sender: Sender) -> None:
    """DescribeGroups of one group, named 10,000 times; it has a member with 100 kB of metadata"""
    sender.prepare_group("g")
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(100_000))
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    with Connection("127.0.0.1", sender.port) as connection:
        joined = connection.send(join, 3)
        assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
        sync = SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[assignment],
        )
        synced = connection.send(sync, 3)
        assert synced.error_code == 0, f"error {synced.error_code}"
    sender.ask(DescribeGroupsRequest(groups=["g"] * 10_000), 5)


def configs_that_nobody_knows(sender: Sender) -> None:
    """1,000 unknown broker configs with long names"""
    configs = [
        incremental_alter_configs.AlterableConfig(name=f"log.retention.{number}" * 20, value="1")
        for number in range(1000)
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=BROKER, resource_name="1", configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=True
    )
    sender.ask(request, 1)


def configs_of_new_topics(sender: Sender) -> None:
    """10,000 new topics, each with an unknown config"""
    topics = [
        CreatableTopic(
            name=f"t{number}",
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name="retention.millis", value="1")],
        )
        for number in range(10_000)
    ]
    sender.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000, validate_only=True), 5)


def expressions_deeply_nested(sender: Sender) -> None:
    """a regular expression of 8,000 nested brackets"""
    depth = 8_000
    config = incremental_alter_configs.AlterableConfig(
        name="match", value="client_id=" + "(" * depth + "a*" + ")*" * depth
    )
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name="m", configs=[config]
    )
    sender.ask(
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=True
        ),
        1,
    )


def markers_of_one_partition(sender: Sender) -> None:
    """WriteTxnMarkers that names one partition 100,000 times"""
    sender.topic("marked")
    topic = write_txn_markers.WritableTxnMarkerTopic(
        name="marked", partition_indexes=[0] * (MANY_NAMES - 10)
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=1, producer_epoch=0, transaction_result=False, topics=[topic]
    )
    sender.ask(write_txn_markers.WriteTxnMarkersRequest(markers=[marker]), 1)


def markers_of_many_producers(sender: Sender) -> None:
    """WriteTxnMarkers of 33,000 producers"""
    sender.topic("marked")
    topic = write_txn_markers.WritableTxnMarkerTopic(name="marked", partition_indexes=[0])
    markers = [
        write_txn_markers.WritableTxnMarker(
            producer_id=number, producer_epoch=0, transaction_result=False, topics=[topic]
        )
        for number in range(MANY_NAMES // 3 - 10)
    ]
    sender.ask(write_txn_markers.WriteTxnMarkersRequest(markers=markers), 1)


def partitions_of_one_transaction(sender: Sender) -> None:
    """AddPartitionsToTxn of 100,000 partitions of one topic"""
    sender.topic("added")
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(
        name="added", partitions=range(MANY_NAMES - 10)
    )
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t", v3_and_below_topics=[topic]
    )
    sender.ask(request, 3)


def states_of_transactions(sender: Sender) -> None:
    """ListTransactions with 100,000 names of states"""
    states = [f"state-{number}" for number in range(MANY_NAMES)]
    sender.ask(list_transactions.ListTransactionsRequest(state_filters=states), 1)


CATALOGUE: Final[tuple[Callable[[Sender], None], ...]] = (
    records_to_a_compacted_topic,
    records_packed_anew,
    records_looked_up_by_time,
    bytes_to_a_compacted_topic,
    pieces_of_pipelined_fetches,
    tags_of_a_header,
    tags_of_a_body,
    names_of_groups,
    names_of_topics,
    names_of_coordinators,
    sessions_of_fetches,
    groups_with_many_protocols,
    configs_that_nobody_knows,
    configs_of_new_topics,
    expressions_deeply_nested,
    markers_of_one_partition,
    markers_of_many_producers,
    partitions_of_one_transaction,
    states_of_transactions,
    answers_about_a_broker,
    answers_about_groups,
    answers_about_offsets,
    answers_about_a_member,
)


def play(entry: Callable[[Sender], None], port: int, pid: int) -> Cost:
    """Do it beside a bystander, who must not lose a connection or a record."""
    batch_of_many(MANY_RECORDS)
    sender = Sender(port)
    began = time.monotonic()
    with (
        Bystander(port, f"beside-{entry.__name__}", timeout_s=300) as bystander,
        MemoryWatch(pid) as memory,
    ):
        while bystander.rounds < 5:
            time.sleep(0.01)
        bystander.slowest_round_s = 0.0
        entry(sender)
        rounds = bystander.rounds
        while bystander.rounds < rounds + 5:
            time.sleep(0.01)
    took_s = time.monotonic() - began
    return Cost(sender.sent_bytes, took_s, bystander.slowest_round_s, memory.growth_bytes)


def tell(line: str) -> None:
    """At once: an entry may take long."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def cost_beside(entry: Callable[[Sender], None], start: Callable[[Path], Server]) -> Cost | str:
    """What an entry costs a server of its own, or how the bystander came to harm."""
    with tempfile.TemporaryDirectory() as directory, start(Path(directory)) as server:
        try:
            return play(entry, server.port, server.pid)
        except Exception as failure:  # noqa: BLE001 (the other entries are played all the same)
            return f"{failure!r}: {failure.__cause__!r}"


def shown(cost: Cost | str) -> str:
    if isinstance(cost, str):
        return cost
    return f"{cost.bystander_s * 1000:,.0f} ms, {cost.memory_bytes / MIB:,.0f} MiB"


def main(names: list[str]) -> None:
    """Print the catalogue with what it costs."""
    tell("| request | sent | Headrace: waited, memory | Kafka: waited, memory |")
    tell("|---|---:|---:|---:|")
    for entry in CATALOGUE:
        if names and entry.__name__ not in names:
            continue
        ours = cost_beside(entry, HeadraceProcess)
        theirs = cost_beside(entry, partial(ApacheKafka, heap=KAFKAS_HEAP))
        sent = f"{ours.sent_bytes / 1000:,.0f} kB" if isinstance(ours, Cost) else ""
        tell(f"| {entry.__doc__} | {sent} | {shown(ours)} | {shown(theirs)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
