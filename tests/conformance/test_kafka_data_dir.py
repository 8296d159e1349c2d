"""One data directory, two brokers: Headrace's log opens what a real Kafka wrote, and a real Kafka opens what it wrote."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.ids import TopicPartition as OurTopicPartition
from headrace.log.files.os_disk import OsDisk
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.records.batch_reader import Record
from headrace.records.compression import Codec
from tests.conformance.clients.confluent import Confluent
from tests.conformance.kafka_data import (
    QUICK_TASKS,
    checkpointed,
    consume,
    create,
    run_transactions,
    send,
    wait_until,
)
from tests.conformance.our_log import (
    SMALL_SEGMENTS,
    START_MS,
    OurLog,
    open_ours,
    read_ours,
    write_ours,
)
from tests.conformance.samples import CODECS, SAMPLES
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import bootstrap

PARTITIONS = {
    "codecs": len(CODECS),
    "segments": 1,
    "idempotent": 1,
    "transactions": 1,
    "compacted": 1,
    "cut": 1,
}
CONFIGS = {
    "segments": {"segment.bytes": str(1 << 20)},
    "compacted": {
        "cleanup.policy": "compact",
        "segment.bytes": str(1 << 20),
        "min.cleanable.dirty.ratio": "0.01",
    },
}
NAMES = [
    f"{topic}-{partition}" for topic, count in PARTITIONS.items() for partition in range(count)
]
CUT_AT = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaWrote:
    """A data directory after kill -9, the same after a clean stop, and what Kafka's consumers saw of it."""

    killed: Path
    stopped: Path
    records: dict[str, list[Record]]
    committed: list[Record]


@pytest.fixture(scope="module")
def kafka_wrote(tmp_path_factory: pytest.TempPathFactory) -> KafkaWrote:
    directory = tmp_path_factory.mktemp("kafka-wrote")
    kafka = ApacheKafka(directory / "node", properties=QUICK_TASKS)
    try:
        kafka.start()
        create(kafka, PARTITIONS, CONFIGS)
        fill(kafka)
        records = {name: consume(kafka, name) for name in NAMES}
        committed = consume(kafka, "transactions-0", isolation="read_committed")
        kafka.kill()
        shutil.copytree(kafka.data_dir, directory / "killed")
        kafka.start()
    finally:
        kafka.stop()
    return KafkaWrote(
        killed=directory / "killed", stopped=kafka.data_dir, records=records, committed=committed
    )


def fill(kafka: ApacheKafka) -> None:
    address = bootstrap(kafka)
    for partition, codec in enumerate(CODECS):
        Confluent().produce(address, "codecs", partition, SAMPLES, codec=codec)
    send(Producer({"bootstrap.servers": address}), "segments", 300, bytes(12_000))
    send(
        Producer({"bootstrap.servers": address, "enable.idempotence": True}),
        "idempotent",
        50,
        b"once",
    )
    send(Producer({"bootstrap.servers": address}), "cut", 20, b"some are deleted")
    admin = AdminClient({"bootstrap.servers": address})
    for cut in admin.delete_records([TopicPartition("cut", 0, CUT_AT)]).values():
        cut.result(30)
    wait_until(
        lambda: checkpointed(kafka.data_dir, "cut-0", clean=False).log_start_offset == CUT_AT, kafka
    )
    run_transactions(address)
    compact(kafka)


def compact(kafka: ApacheKafka) -> None:
    """Write enough for the cleaner to want to work, and wait until it has."""
    send(
        Producer({"bootstrap.servers": bootstrap(kafka), "linger.ms": 20}),
        "compacted",
        500,
        bytes(8_000),
    )
    wait_until(lambda: is_compacted(kafka, "compacted-0"), kafka)


def is_compacted(kafka: ApacheKafka, name: str) -> bool:
    """Whether each key is there once in the segments before the active one, wherever Kafka has rolled them."""
    active_from = max(int(path.stem) for path in (kafka.data_dir / name).glob("*.log"))
    keys = [record.key for record in consume(kafka, name) if record.offset < active_from]
    return len(keys) == len(set(keys)) > 0


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize("name", NAMES)
def test_our_log_reads_what_kafka_wrote(
    kafka_wrote: KafkaWrote, tmp_path: Path, name: str, how: str
) -> None:
    data_dir: Path = getattr(kafka_wrote, how)
    log = open_ours(
        shutil.copytree(data_dir / name, tmp_path / name),
        checkpointed(data_dir, name, clean=how == "stopped"),
    )
    assert list(read_ours(log)) == kafka_wrote.records[name]
    assert log.leader_epochs.latest >= 0
    log.close(0)


def test_several_segments_and_deleted_records_were_part_of_it(kafka_wrote: KafkaWrote) -> None:
    assert len(list((kafka_wrote.stopped / "segments-0").glob("*.log"))) >= 3
    assert kafka_wrote.records["cut-0"][0].offset == CUT_AT
    offsets = [record.offset for record in kafka_wrote.records["compacted-0"]]
    assert offsets[-1] == 499
    assert len(offsets) < 500


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_our_log_knows_which_transactions_were_aborted(
    kafka_wrote: KafkaWrote, tmp_path: Path, how: str
) -> None:
    data_dir: Path = getattr(kafka_wrote, how)
    name = "transactions-0"
    copy = shutil.copytree(data_dir / name, tmp_path / name)
    log = open_ours(copy, checkpointed(data_dir, name, clean=how == "stopped"))
    committed = {record.offset for record in kafka_wrote.committed}
    everything = {record.offset for record in kafka_wrote.records[name]}
    aborted = log.aborted_transactions(0, log.log_end_offset)
    assert len(aborted) == 3
    for txn in aborted:
        inside = {offset for offset in everything if txn.first_offset <= offset <= txn.last_offset}
        assert len(inside - committed) == 6
        assert txn.first_offset in inside - committed
    assert len(everything - committed) == 18
    log.producers.on_high_watermark(log.log_end_offset)
    assert log.producers.first_unstable_offset is None


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_kafka_reads_what_our_log_wrote(tmp_path: Path, how: str) -> None:
    topics = {f"ours-{codec.name.lower()}": 1 for codec in Codec}
    kafka = ApacheKafka(tmp_path / "node")
    try:
        kafka.start()
        create(kafka, topics, {})
        if how == "killed":
            kafka.kill()
        else:
            kafka.stop()
        written = {
            codec: replace_with_ours(kafka.data_dir, codec, clean=how == "stopped")
            for codec in Codec
        }
        kafka.start()
        for codec, ours in written.items():
            name = f"ours-{codec.name.lower()}"
            least_end = ours.records[-1].offset + 1
            assert consume(kafka, f"{name}-0", least_end=least_end) == ours.records
            committed = consume(kafka, f"{name}-0", isolation="read_committed")
            assert [record.offset for record in committed] == sorted(ours.committed_offsets())
            send(
                Producer({"bootstrap.servers": bootstrap(kafka)}),
                name,
                3,
                b"written behind ours by Kafka",
            )
    finally:
        kafka.stop()
    for codec, ours in written.items():
        name = f"ours-{codec.name.lower()}-0"
        log = open_ours(kafka.data_dir / name, checkpointed(kafka.data_dir, name, clean=True))
        assert log.log_end_offset == ours.log.log_end_offset + 3
        assert list(read_ours(log))[: len(ours.records)] == ours.records
        log.close(0)


def replace_with_ours(data_dir: Path, codec: Codec, *, clean: bool) -> OurLog:
    """Put a log of ours in the place of Kafka's, under the topic id that Kafka knows."""
    directory = data_dir / f"ours-{codec.name.lower()}-0"
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    ours = write_ours(directory, codec, second_leader_epoch=0)
    if clean:
        ours.log.close(0)
    else:
        ours.log.abandon()
        segments = sorted(directory.glob("*.log"))
        with segments[-1].open("ab") as log:  # as if the power went in the middle of a write
            log.write(segments[0].read_bytes()[:90])
    return ours


def test_producers_go_on_where_kafka_left_them(kafka_wrote: KafkaWrote, tmp_path: Path) -> None:
    name = "idempotent-0"
    copy = shutil.copytree(kafka_wrote.stopped / name, tmp_path / name)
    log: PartitionLog = open_ours(copy, checkpointed(kafka_wrote.stopped, name, clean=True))
    [entry] = log.producers
    assert entry.last_sequence == 49


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_whole_data_directory_changes_hands(
    kafka_wrote: KafkaWrote, tmp_path: Path, how: str
) -> None:
    kafka = ApacheKafka(tmp_path / "node")
    shutil.copytree(getattr(kafka_wrote, how), kafka.data_dir)
    dirs = LogDirs(
        OsDisk(), [str(kafka.data_dir)], config_for=lambda _topic: SMALL_SEGMENTS, new_id=uuid4
    )
    dirs.open(START_MS)
    assert not dirs.broken
    assert not dirs.offline
    for name, records in kafka_wrote.records.items():
        topic, _, partition = name.rpartition("-")
        log = dirs.get(OurTopicPartition(topic, int(partition)))
        assert log is not None
        assert list(read_ours(log)) == records, name
    dirs.close(START_MS)
    with kafka:
        for name, records in kafka_wrote.records.items():
            assert consume(kafka, name) == records, name
