"""One record per request: a window of requests on 1, 16 and 100 connections, and one after the other, also beside a neighbour
who sends large ones as fast as they are taken.

Ready frames over plain sockets, so that the client costs the same whoever answers; `1 connection, librdkafka` is the
same with a real client that is told to put one record into each request, and `librdkafka synchronous` with one that waits for
each record's report before it sends the next.
"""

import time
from collections.abc import Iterator

from bench.beside_kafka import topics
from bench.beside_kafka.cost import MB, measured
from bench.beside_kafka.librdkafka import Messages, Producer
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.raw_client import Pumped, call_one_by_one, pump
from bench.beside_kafka.results import latency_figures
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.servers import Node
from bench.beside_kafka.threads import at_once
from bench.beside_kafka.wire_frames import produce_frame

ABOUT = "one 100 B record per request: 1, 16 and 100 connections; synchronous p50 and p99, alone and beside a large producer"
WITH_FLOOR = True

TOPIC = "requests"
NEIGHBOURS_TOPIC = "requests-neighbour"
NEIGHBOURS_RECORDS = 64  # of 1 KiB, in each of the neighbour's requests
RECORD_BYTES = 100
WINDOW = 5  # max.in.flight.requests.per.connection of Kafka's producer
SECONDS = 2.0
LIBRDKAFKA_RECORDS = 30_000
WARM_UP_RECORDS = 100


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
        synchronous_librdkafka(broker, notebook, name, seconds)
        yield
    beside_a_neighbour(broker, notebook, seconds)
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
        times = call_one_by_one(broker.port, frame, seconds=seconds)
    figures = {**latency_figures(times, 1e3), **cost.of_requests(len(times))}
    notebook.note(f"requests synchronous acks={name}", figures)


def synchronous_librdkafka(broker: Node, notebook: Notebook, acks: str, seconds: float) -> None:
    """What an application sees that waits for each record: the threads of a real client are in it."""
    settings = {"acks": acks, "linger.ms": "0", "socket.nagle.disable": "true"}
    message = Messages(payloads(RECORD_BYTES)[:1], 1)
    times: list[float] = []
    with Producer(
        {"bootstrap.servers": broker.bootstrap, **settings}, reports_all=True
    ) as producer:

        def send_one() -> float:
            began = time.perf_counter()
            producer.send(TOPIC, message)
            producer.flush()
            return time.perf_counter() - began

        for _ in range(WARM_UP_RECORDS):
            send_one()
        with measured(broker.pids) as cost:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                times.append(send_one())
    figures = {**latency_figures(times, 1e3), **cost.of_requests(len(times))}
    notebook.note(f"requests librdkafka synchronous acks={acks}", figures)


def beside_a_neighbour(broker: Node, notebook: Notebook, seconds: float) -> None:
    topics.create(broker.port, NEIGHBOURS_TOPIC)
    small = produce_frame(TOPIC, list(payloads(RECORD_BYTES)[:1]))
    large = produce_frame(NEIGHBOURS_TOPIC, list(payloads(1024)[:NEIGHBOURS_RECORDS]))
    times: list[float] = []
    passed: list[Pumped] = []
    with measured(broker.pids) as cost:
        at_once(
            lambda: passed.append(pump(broker.port, [large], window=WINDOW, seconds=seconds)),
            lambda: times.extend(call_one_by_one(broker.port, small, seconds=seconds)),
        )
    (neighbour,) = passed
    sent_mb = neighbour.requests * large.payload_bytes / MB
    figures = {**latency_figures(times, 1e3), "neighbour's MB/s": sent_mb / neighbour.seconds}
    notebook.note("requests beside a neighbour", {**figures, **cost.memory()})
    topics.delete(broker.port, NEIGHBOURS_TOPIC)
