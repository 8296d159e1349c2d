"""The HTTP programs beside their floor: schemas by id from the registry, records through version 3 of the REST proxy.

The floor is the same HTTP server with the same request metrics, answering constants without an access log. Program and
floor are measured alternately, 64 connections each, and compared by medians; the broker, the program and the load
generator share the machine. Beside the requests of many records stands a bare librdkafka producer, too, because the
floor does nothing for a record. CPU time a request, of the program alone, says more than rates where other programs use
the machine, too. BENCH_SECONDS asks for longer rounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import uvloop
from confluent_kafka import Producer

from bench.beside_kafka.process_cost import cpu_seconds
from bench.http.load import load, request_bytes
from bench.report import Line, Report
from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess
from tests.support.rest_process import RestProcess
from tests.support.server_process import ServerProcess, free_port

CONNECTIONS: Final = 64
ROUNDS: Final = 3
WARM_UP_S: Final = 1.0
RECORDS: Final = 100
READY_S: Final = 60
TOPIC: Final = "bench"
VALUE: Final = {
    "id": 12345,
    "name": "some text",
    "is_new": True,
    "note": "a little more text",
    "price": 12.5,
}
AT_LEAST: Final = 0.5


class Server(NamedTuple):
    """What is measured: a process that listens on a port."""

    port: int
    pid: int


class Case(NamedTuple):
    """A request, and what its answer must contain."""

    what: str
    server: Server
    request: bytes
    expected: bytes


class Round(NamedTuple):
    """One measurement of a server."""

    rate: float
    p99_ms: float
    cpu_us: float  # a request


def run() -> Report:
    """About two minutes."""
    seconds = float(os.environ.get("BENCH_SECONDS", "4"))
    report = Report(f"services: HTTP programs beside their floor, {CONNECTIONS} connections")
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory:
        report.lines += _measure(Path(directory), seconds)
    return report


def _measure(directory: Path, seconds: float) -> Iterator[Line]:
    with HeadraceProcess(directory / "broker") as broker:
        brokers = f"127.0.0.1:{broker.port}"
        with (
            RegistryProcess(directory / "registry", brokers) as registry,
            RestProcess(directory / "rest", brokers, registry=registry.url) as proxy,
            _floor(directory) as floor,
        ):
            registry.await_primary()
            _, registered = registry.register("s", {"type": "fixed", "name": "F", "size": 1})
            proxy.create_topic(TOPIC, 4)
            request = request_bytes("GET", f"/schemas/ids/{registered['id']}")
            server = Server(registry.port, registry.pid)
            yield from _pair(
                Case("registry: schema by id", server, request, b'"schema"'), floor, seconds
            )
            path = f"{proxy.cluster}/topics/{TOPIC}/records"
            one = json.dumps({"value": {"type": "JSON", "data": VALUE}}).encode()
            request = request_bytes("POST", path, one)
            server = Server(proxy.port, proxy.pid)
            good = b'"error_code":200'
            yield from _pair(
                Case("REST: produce, a record a request", server, request, good), floor, seconds
            )
            many = request_bytes("POST", path, one * RECORDS)
            yield from _records(
                Case("REST: produce, records", server, many, good), floor, brokers, seconds
            )


def _pair(case: Case, floor: Server, seconds: float) -> Iterator[Line]:
    """Requests a second as a ratio to the floor's, the 99th percentile and the CPU time of both."""
    bare_case = case._replace(server=floor)
    for each in (case, bare_case):
        _load(each, WARM_UP_S)
    measured, bare = [], []
    for _ in range(ROUNDS):
        bare.append(_load(bare_case, seconds))
        measured.append(_load(case, seconds))
    yield Line(
        what=f"{case.what}: of the floor",
        value=_rate(measured) / _rate(bare),
        at_least=AT_LEAST,
        detail=f"{_rate(measured):,.0f} of {_rate(bare):,.0f} requests/s",
    )
    yield from _latency_and_cost(case.what, measured, bare)


def _records(case: Case, floor: Server, brokers: str, seconds: float) -> Iterator[Line]:
    """Records a second, those of the floor, and those of a producer without HTTP."""
    bare_case = case._replace(server=floor)
    for each in (case, bare_case):
        _load(each, WARM_UP_S)
    what = f"{case.what} ({RECORDS} a request)"
    measured, bare, producer = [], [], []
    for _ in range(ROUNDS):
        bare.append(_load(bare_case, seconds))
        producer.append(_bare_producer(brokers, seconds))
        measured.append(_load(case, seconds))
    yield Line(
        what=what,
        value=round(_rate(measured) * RECORDS),
        unit="rec/s",
        detail=f"floor {_rate(bare) * RECORDS:,.0f}, a librdkafka producer {median(producer):,.0f}",
    )
    yield from _latency_and_cost(what, measured, bare)


def _latency_and_cost(what: str, measured: list[Round], bare: list[Round]) -> Iterator[Line]:
    slow, bare_slow = (median(each.p99_ms for each in rounds) for rounds in (measured, bare))
    yield Line(
        what=f"{what}: p99", value=round(slow, 1), unit="ms", detail=f"floor {bare_slow:.1f} ms"
    )
    cost, bare_cost = (median(each.cpu_us for each in rounds) for rounds in (measured, bare))
    yield Line(
        what=f"{what}: CPU a request",
        value=round(cost),
        unit="us",
        detail=f"floor {bare_cost:.0f} us, {bare_cost / cost:.2f} of it",
    )


def _rate(rounds: list[Round]) -> float:
    return median(each.rate for each in rounds)


def _load(case: Case, seconds: float) -> Round:
    used_s = cpu_seconds(case.server.pid)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(
            load(
                case.server.port,
                case.request,
                connections=CONNECTIONS,
                seconds=seconds,
                expected=case.expected,
            )
        )
    if found.failures or not found.requests:
        raise RuntimeError(f"{case.what}: {found.failures} of {found.requests} requests failed")
    used_s = cpu_seconds(case.server.pid) - used_s
    return Round(found.rate, found.p99_ms, used_s / found.all_requests * 1e6)


def _bare_producer(brokers: str, seconds: float) -> float:
    """Records a second of the same size, from one Python program that does nothing else."""
    producer = Producer(
        {
            "bootstrap.servers": brokers,
            "enable.idempotence": "true",
            "linger.ms": "5",
            "queue.buffering.max.messages": "200000",
        }
    )
    value, done, started = json.dumps(VALUE).encode(), 0, time.perf_counter()

    def delivered(error: object, _: object) -> None:
        nonlocal done
        assert error is None
        done += 1

    while time.perf_counter() - started < seconds:
        try:
            producer.produce(TOPIC, value, on_delivery=delivered)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    producer.flush(30)
    return done / (time.perf_counter() - started)


@contextmanager
def _floor(directory: Path) -> Iterator[Server]:
    """The floor, as a process."""
    port = free_port()
    process = ServerProcess(directory / "floor.log")
    process.start(
        [sys.executable, "-m", "bench.http.floor", str(port)],
        port=port,
        ready_s=READY_S,
        env=os.environ,
        serves=_serves,
    )
    try:
        yield Server(port, process.pid)
    finally:
        process.stop(READY_S)


def _serves(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True
