"""Produce with librdkafka: three sizes of records, three codecs, acks 1 and all, and as an idempotent producer."""

from collections.abc import Iterator

from bench.beside_kafka import topics
from bench.beside_kafka.cost import measured
from bench.beside_kafka.librdkafka import Messages, Producer
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.servers import FLOOR, Node, Server

ABOUT = "librdkafka: 100 B, 1 KiB, 10 KiB; none, lz4, zstd; acks 1 and all; idempotent"
WITH_FLOOR = True

TOPIC = "produce"
AT_ONCE = 10_000
FIRST = 1_000
# Records of each size: about a second of Kafka. Half as many are compressed, which takes its time.
RECORDS = {100: 2_000_000, 1024: 400_000, 10_240: 60_000}
SIZE_NAMES = {100: "100 B", 1024: "1 KiB", 10_240: "10 KiB"}
CODECS = ("none", "lz4", "zstd")
ACKS = ("1", "all")
# Where the client's own speed decides, the two are a few percent apart. One after the other and in reverse order tells
# that better than a run of twice the length: a machine that gets slower meanwhile harms both alike.
TIMES = 2


def measure(broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
    for record_bytes, records in RECORDS.items():
        messages = Messages(payloads(record_bytes), min(AT_ONCE, records))
        for codec, acks in _ways(broker):
            case = f"produce librdkafka {SIZE_NAMES[record_bytes]} {codec} acks={acks}"
            settings = {"compression.codec": codec, "acks": acks}
            count = size.count(records if codec == "none" else records // 2)
            for _ in range(TIMES):
                notebook.note(case, produce(broker, messages, count, settings))
                yield
    if broker.name != FLOOR:
        idempotent(broker, notebook, size)
        yield


def _ways(broker: Node) -> list[tuple[str, str]]:
    """Codecs and acks; to the floor they are all the same."""
    if broker.name == FLOOR:
        return [("none", "all")]
    return [(codec, acks) for codec in CODECS for acks in ACKS]


def idempotent(broker: Node, notebook: Notebook, size: Size) -> None:
    messages = Messages(payloads(1024), AT_ONCE)
    figures = produce(broker, messages, size.count(RECORDS[1024]), {"enable.idempotence": "true"})
    notebook.note("produce librdkafka 1 KiB none idempotent", figures)


def produce(
    broker: Server,
    messages: Messages,
    records: int,
    settings: dict[str, str],
    *,
    partitions: int = 1,
    replication_factor: int = 1,
) -> dict[str, float]:
    """Send that many records to a new topic as fast as they are taken."""
    topics.create(broker.port, TOPIC, partitions=partitions, replication_factor=replication_factor)
    with Producer({"bootstrap.servers": broker.bootstrap, **settings}) as producer:
        # The first records wait for metadata and connections; they are not measured.
        first = min(len(messages), FIRST)
        producer.send(TOPIC, messages, first)
        producer.flush()
        sent_bytes = 0
        with measured(broker.pids) as cost:
            for start in range(0, records, len(messages)):
                count = min(len(messages), records - start)
                producer.send(TOPIC, messages, count)
                sent_bytes += messages.bytes_up_to[count]
            producer.flush()
    topics.insist_on(broker.port, TOPIC, first + records)
    topics.delete(broker.port, TOPIC)
    return cost.of_bytes(sent_bytes, records)
