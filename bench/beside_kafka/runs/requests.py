"""One record per request: a window of requests on 1, 16 and 100 connections, and one after the other.

Ready frames over plain sockets, so that the client costs the same whoever answers; `1 connection, librdkafka` is the
same with a real client that is told to put one record into each request.
"""

from collections.abc import Iterator

from bench.beside_kafka import topics
from bench.beside_kafka.cost import measured
from bench.beside_kafka.librdkafka import Messages, Producer
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.raw_client import call_one_by_one, pump
from bench.beside_kafka.results import percentile
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.servers import Node
from bench.beside_kafka.wire_frames import produce_frame

ABOUT = "one 100 B record per request: 1, 16 and 100 connections; synchronous p50 and p99"
WITH_FLOOR = True

TOPIC = "requests"
RECORD_BYTES = 100
WINDOW = 5  # max.in.flight.requests.per.connection of Kafka's producer
SECONDS = 2.0
LIBRDKAFKA_RECORDS = 30_000


def measure(broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
    topics.create(broker.port, TOPIC)
    seconds = size.seconds(SECONDS)
    frame = produce_frame(TOPIC, list(payloads(RECORD_BYTES)[:1]))
    pump(broker.port, [frame], window=WINDOW, seconds=seconds)  # this path, warm
    for connections in (1, 16, 100):
        with measured(broker.pids) as cost:
            done = pump(broker.port, [frame] * connections, window=WINDOW, seconds=seconds)
        cost.seconds = done.seconds  # without dialling
        plural = "s" if connections > 1 else ""
        notebook.note(f"requests {connections} connection{plural}", cost.of_requests(done.requests))
        yield
    librdkafka(broker, notebook, size)
    yield
    for acks, name in ((1, "1"), (-1, "all")):
        synchronous(broker, notebook, acks, name, seconds)
        yield
    topics.delete(broker.port, TOPIC)


def librdkafka(broker: Node, notebook: Notebook, size: Size) -> None:
    settings = {"batch.num.messages": "1", "linger.ms": "0", "socket.nagle.disable": "true"}
    messages = Messages(payloads(RECORD_BYTES), size.count(LIBRDKAFKA_RECORDS))
    with Producer({"bootstrap.servers": broker.bootstrap, **settings}) as producer:
        producer.send(TOPIC, messages, min(100, len(messages)))
        producer.flush()
        with measured(broker.pids) as cost:
            producer.send(TOPIC, messages)
            producer.flush()
    notebook.note("requests 1 connection, librdkafka", cost.of_requests(len(messages)))


def synchronous(broker: Node, notebook: Notebook, acks: int, name: str, seconds: float) -> None:
    frame = produce_frame(TOPIC, list(payloads(RECORD_BYTES)[:1]), acks=acks)
    with measured(broker.pids) as cost:
        times = sorted(call_one_by_one(broker.port, frame, seconds=seconds))
    figures = {
        "p50 ms": percentile(times, 0.50) * 1e3,
        "p99 ms": percentile(times, 0.99) * 1e3,
        "p99.9 ms": percentile(times, 0.999) * 1e3,
    }
    notebook.note(f"requests synchronous acks={name}", {**figures, **cost.of_requests(len(times))})
