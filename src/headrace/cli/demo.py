"""`headrace demo`: the platform's main job, end to end, on this machine. Ends by itself; exit code 0 only if all was verified.

Starts a broker, sends a stream of shop events through it, shares them among a consumer group, kills the broker, starts it
again and checks that nothing it had acknowledged is gone.
"""

import argparse
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message
    from rich.console import Console

_TOPIC: Final = "shop-events"
_PARTITIONS: Final = 6
_EVENTS: Final = 60_000
_KINDS: Final = ("view", "search", "cart", "order", "payment")
_START_TIMEOUT_S: Final = 20.0
_READ_TIMEOUT_S: Final = 60.0


class DemoFailed(Exception):
    """Something the demo promised did not hold."""


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="headrace demo", description="Headrace, shown end to end."
    )
    parser.add_argument("--events", type=int, default=_EVENTS, help="how many events to send")
    options = parser.parse_args(arguments)

    from rich.console import Console

    console = Console()
    directory = Path(tempfile.mkdtemp(prefix="headrace-demo-"))
    broker = DemoBroker(directory)
    try:
        _show(console, broker, options.events)
    except DemoFailed as failure:
        console.print(f"[red]failed:[/red] {failure}")
        return 1
    finally:
        broker.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return 0


def _show(console: "Console", broker: "DemoBroker", events: int) -> None:
    started_s = broker.start()
    console.print(f"[bold]1[/bold]  a broker answers on {broker.address} after {started_s:.2f} s")
    acknowledged = _produce(console, broker.address, events)
    _require(len(acknowledged) == events, f"{len(acknowledged)} of {events} events acknowledged")
    shares = _consume_as_group(console, broker.address, events)
    _print_shares(console, shares)
    broker.kill()
    restarted_s = broker.start()
    console.print(
        f"[bold]4[/bold]  killed with SIGKILL, started again on its data after {restarted_s:.2f} s"
    )
    stored = _read_everything(broker.address)
    lost = acknowledged - stored
    _require(not lost, f"{len(lost)} acknowledged events are gone")
    _require(len(stored) == events, f"{len(stored)} events stored, {events} sent")
    console.print(f"[bold]5[/bold]  all {len(stored):,} acknowledged events are there, none twice")
    console.print(
        "\nNext: [bold].venv/bin/headrace server-start[/bold] runs a broker of your own on 127.0.0.1:9092;"
        " README.md shows a client and a test."
    )


class DemoBroker:
    """A broker process on a free port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """What clients dial."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> float:
        """Start it. Returns how long it took until it answered."""
        begun = time.monotonic()
        with (self._directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "headrace.cli.main",
                    "server-start",
                    f"--override=listeners=PLAINTEXT://{self.address}",
                    f"--override=log.dirs={self._directory}/data",
                    "--override=group.initial.rebalance.delay.ms=500",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        while time.monotonic() - begun < _START_TIMEOUT_S:
            if self._process.poll() is not None:
                raise DemoFailed(f"the broker ended at once: {self._log()}")
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return time.monotonic() - begun
        raise DemoFailed(f"the broker did not answer within {_START_TIMEOUT_S} s")

    def kill(self) -> None:
        """As if the power went."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator would."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait()

    def _log(self) -> str:
        return (self._directory / "broker.log").read_text(encoding="utf-8")[-2000:]


def _produce(console: "Console", address: str, events: int) -> set[bytes]:
    """Send the events. Returns those that were acknowledged."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic
    from rich.progress import Progress

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)])[_TOPIC].result(20)
    acknowledged: set[bytes] = set()

    def on_delivery(error: "KafkaError | None", message: "Message") -> None:
        if error is None:
            acknowledged.add(message.value() or b"")

    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5})
    begun = time.monotonic()
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("   sending", total=events)
        for number in range(events):
            user = f"user-{chance.randrange(2000)}"
            value = f'{{"id":{number},"user":"{user}","kind":"{chance.choice(_KINDS)}"}}'
            while True:
                try:
                    producer.produce(_TOPIC, key=user, value=value, on_delivery=on_delivery)
                    break
                except BufferError:
                    producer.poll(0.05)
            if number % 1000 == 0:
                producer.poll(0)
                progress.update(bar, completed=len(acknowledged))
        while producer.flush(0.2):
            progress.update(bar, completed=len(acknowledged))
    seconds = time.monotonic() - begun
    console.print(
        f"[bold]2[/bold]  {events:,} events into {_PARTITIONS} partitions of [cyan]{_TOPIC}[/cyan], "
        f"idempotently, in {seconds:.1f} s"
    )
    return acknowledged


def _consume_as_group(console: "Console", address: str, events: int) -> list[tuple[int, set[int]]]:
    """Three members of one group share the events. Returns what each of them got: count and partitions."""
    counts = [0, 0, 0]
    partitions: list[set[int]] = [set(), set(), set()]
    done = threading.Event()

    def member(number: int) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {"bootstrap.servers": address, "group.id": "shop", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([_TOPIC])
        while not done.is_set():
            for message in consumer.consume(1000, 0.2):
                if message.error() is None:
                    counts[number] += 1
                    partitions[number].add(message.partition() or 0)
        consumer.close()

    threads = [threading.Thread(target=member, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _READ_TIMEOUT_S
    while sum(counts) < events and time.monotonic() < deadline:
        time.sleep(0.05)
    done.set()
    for thread in threads:
        thread.join()
    _require(sum(counts) >= events, f"the group read {sum(counts)} of {events} events")
    console.print(f"[bold]3[/bold]  a consumer group of three has read all {events:,}:")
    return list(zip(counts, partitions, strict=True))


def _print_shares(console: "Console", shares: list[tuple[int, set[int]]]) -> None:
    longest = max(count for count, _ in shares) or 1
    for number, (count, partitions) in enumerate(shares, 1):
        bar = "█" * round(40 * count / longest)
        shown = ", ".join(map(str, sorted(partitions)))
        console.print(
            f"      member {number} [green]{bar:<40}[/green] {count:>7,}  partitions {shown}"
        )


def _read_everything(address: str) -> set[bytes]:
    """Every event that is stored; DemoFailed if one is stored twice."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "check", "enable.partition.eof": True}
    )
    consumer.assign(
        [TopicPartition(_TOPIC, index, OFFSET_BEGINNING) for index in range(_PARTITIONS)]
    )
    stored: Counter[bytes] = Counter()
    ended: set[int] = set()
    deadline = time.monotonic() + _READ_TIMEOUT_S
    while len(ended) < _PARTITIONS and time.monotonic() < deadline:
        for message in consumer.consume(5000, 0.5):
            error = message.error()
            if error is None:
                stored[message.value() or b""] += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
    consumer.close()
    twice = [value for value, count in stored.items() if count > 1]
    _require(not twice, f"{len(twice)} events are stored twice")
    return set(stored)


def _require(holds: bool, text: str) -> None:  # noqa: FBT001 (reads as a sentence)
    if not holds:
        raise DemoFailed(text)
