"""Records in and out of the demo's cluster, through librdkafka: as any program would. A rim module.

Everything that waits looks whether the demo shall end, and gives up after a time that is generous for a slow machine.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from headrace.cli.demo.shop import Event
from headrace.cli.local.local_servers import Stopped
from headrace.cli.shell.command_line import Failure
from headrace.cli.shell.stopping import StopRequest

if TYPE_CHECKING:
    from headrace.client.librdkafka import KafkaError, Message

PATIENCE_S: Final = 180.0


@dataclass(slots=True)
class Sent:
    """What became of events that were sent: which are acknowledged, and the longest wait between two acknowledgements."""

    acknowledged: set[bytes] = field(default_factory=set)
    refused: str = ""
    longest_pause_s: float = 0.0
    _last_s: float = 0.0

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused = error.str()
            return
        now_s = time.monotonic()
        if self._last_s:
            self.longest_pause_s = max(self.longest_pause_s, now_s - self._last_s)
        self._last_s = now_s
        self.acknowledged.add(message.value() or b"")


def send(
    servers: str,
    topic: str,
    stream: Sequence[Event],
    stop: StopRequest,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
    per_second: float | None = None,
) -> Sent:
    """Send events with acks=all, each exactly once in the log. Raises Failure where one is refused."""
    from headrace.client.librdkafka import make_producer

    sent = Sent()
    settings = {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": 150_000}
    producer = make_producer({**settings, "bootstrap.servers": servers})
    started_s = time.monotonic()
    for number, event in enumerate(stream):
        while True:
            try:
                producer.produce(
                    topic, key=event.user, value=event.value(), on_delivery=sent.on_delivery
                )
                break
            except BufferError:
                producer.poll(0.05)
                _go_on(stop, started_s, "the events are sent")
        if number % 200 == 0:
            _pace(producer.poll, number, started_s, per_second)
            _go_on(stop, started_s, "the events are sent")
            on_progress(len(sent.acknowledged))
    while producer.flush(0.1):
        _go_on(stop, started_s, "all events are acknowledged")
        on_progress(len(sent.acknowledged))
    on_progress(len(sent.acknowledged))
    if sent.refused or len(sent.acknowledged) != len(stream):
        raise Failure(
            f"{len(sent.acknowledged):,} of {len(stream):,} events acknowledged", why=sent.refused
        )
    return sent


def _pace(
    poll: Callable[[float], object], number: int, started_s: float, per_second: float | None
) -> None:
    poll(0)
    if per_second is not None:
        ahead_s = number / per_second - (time.monotonic() - started_s)
        if ahead_s > 0:
            poll(ahead_s)


@dataclass(slots=True)
class Share:
    """What one member of the group got."""

    events: int = 0
    partitions: set[int] = field(default_factory=set)


def read_as_group(
    servers: str,
    topic: str,
    members: int,
    wanted: int,
    stop: StopRequest,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[Share]:
    """Members of one group share the events of a topic, each in a thread of its own."""
    shares = [Share() for _ in range(members)]
    failures: list[str] = []
    done = threading.Event()
    threads = [
        threading.Thread(target=_member, args=(servers, topic, share, failures, done), daemon=True)
        for share in shares
    ]
    started_s = time.monotonic()
    try:
        for thread in threads:
            thread.start()
        while sum(share.events for share in shares) < wanted:
            _go_on(stop, started_s, f"the group reads {wanted:,} events")
            if failures:
                raise Failure("a member of the group failed", why=failures[0])
            on_progress(sum(share.events for share in shares))
            time.sleep(0.05)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return shares


def _member(
    servers: str, topic: str, share: Share, failures: list[str], done: threading.Event
) -> None:
    from headrace.client.librdkafka import KafkaException, make_consumer

    settings = {"group.id": "shop", "auto.offset.reset": "earliest"}
    consumer = make_consumer({**settings, "bootstrap.servers": servers})
    try:
        consumer.subscribe([topic])
        while not done.is_set():
            for message in consumer.consume(1000, 0.2):
                if message.error() is None:
                    share.events += 1
                    share.partitions.add(message.partition() or 0)
    except KafkaException as error:
        failures.append(str(error))
    finally:
        consumer.close()


def read_everything(
    servers: str, topic: str, partitions: Iterable[int], stop: StopRequest
) -> Counter[bytes]:
    """How often each value is stored."""
    from headrace.client.librdkafka import (
        OFFSET_BEGINNING,
        PARTITION_EOF,
        TopicPartition,
        make_consumer,
    )

    settings = {"group.id": "check", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = make_consumer({**settings, "bootstrap.servers": servers})
    missing = set(partitions)
    stored: Counter[bytes] = Counter()
    started_s = time.monotonic()
    try:
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in missing])
        while missing:
            _go_on(stop, started_s, f"all of {topic} is read")
            for message in consumer.consume(5000, 0.2):
                error = message.error()
                if error is None:
                    stored[message.value() or b""] += 1
                elif error.code() == PARTITION_EOF:
                    missing.discard(message.partition() or 0)
    finally:
        consumer.close()
    return stored


def _go_on(stop: StopRequest, started_s: float, what: str) -> None:
    if stop.is_made:
        raise Stopped
    if time.monotonic() - started_s > PATIENCE_S:
        raise Failure(f"not within {PATIENCE_S:.0f} s: {what}")
