"""kcat: librdkafka of another age, from the command line.

It writes records one process each, because its headers are options of the command; it cannot set timestamps.
"""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace

from tests.conformance.clients.client import TIMEOUT_S, Refused
from tests.conformance.samples import CODECS, Received, Record
from tests.support import tools

NO_TIMESTAMP = -1
END_OF_RECORD = b"\x1d\x1e\x1d\n"
FORMAT = "%p %o %T %K %S %k%s%h\x1d\x1e\x1d\n"
ASSIGNED = re.compile(r"% Group \S+ rebalanced \(memberid [^)]*\): (assigned|revoked): ?(.*)")


class Kcat:
    """kcat 1.7."""

    name = "kcat"

    def codecs(self) -> tuple[str, ...]:
        return CODECS

    def writable(self, record: Record) -> Record | None:
        # An empty text and none at all are the same on its command line, and it reads keys up to a delimiter.
        if b"" in (record.key, record.value) or record.key is None or b"\x1f" in record.key:
            return None
        return replace(record, timestamp_ms=NO_TIMESTAMP)

    def produce(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], *, codec: str
    ) -> None:
        for record in records:
            headers = [
                option
                for name, value in record.headers
                for option in ("-H", name if value is None else f"{name}={value.decode()}")
            ]
            _kcat(
                "-P",
                *(
                    "-b",
                    bootstrap,
                    "-t",
                    topic,
                    "-p",
                    str(partition),
                    "-z",
                    codec,
                    "-Z",
                    "-K",
                    "\x1f",
                    "-D",
                    "\x1d\x1e\x1d",
                ),
                *headers,
                stdin=(record.key or b"") + b"\x1f" + (record.value or b""),
            )

    def consume(self, bootstrap: str, topic: str, count: int) -> list[Received]:
        common = ("-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-q", "-f", FORMAT)
        received = _parse(_kcat("-C", *common))
        assert len(received) == count, f"{len(received)} of {count} records arrived"
        return received

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> list[Received]:
        reset = ("-X", "auto.offset.reset=earliest")
        return _parse(
            _kcat("-b", bootstrap, "-q", "-f", FORMAT, "-c", str(count), *reset, "-G", group, topic)
        )

    def offset_for_time(
        self, bootstrap: str, topic: str, partition: int, timestamp_ms: int
    ) -> int | None:
        line = _kcat("-Q", "-b", bootstrap, "-t", f"{topic}:{partition}:{timestamp_ms}").decode()
        found = re.fullmatch(rf"{re.escape(topic)} \[{partition}\] offset (-?\d+)", line.strip())
        assert found is not None, line
        return None if int(found[1]) < 0 else int(found[1])

    def member_command(self, bootstrap: str, topic: str, group: str) -> list[str]:
        session = ("-X", "session.timeout.ms=3000", "-X", "heartbeat.interval.ms=500")
        strategy = ("-X", "partition.assignment.strategy=range")
        return [
            str(tools.require("kcat")),
            "-b",
            bootstrap,
            *session,
            *strategy,
            "-G",
            group,
            topic,
        ]

    def read_assignment(self, line: str, topic: str) -> frozenset[int] | None:
        told = ASSIGNED.match(line)
        if told is None:
            return None
        if told[1] == "revoked":
            return frozenset()
        return frozenset(
            int(number) for number in re.findall(rf"{re.escape(topic)} \[(\d+)\]", told[2])
        )


def _kcat(*arguments: str, stdin: bytes = b"") -> bytes:
    command = [str(tools.require("kcat")), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise Refused(done.stderr.decode(errors="replace"))
    return done.stdout


def _parse(printed: bytes) -> list[Received]:
    received = []
    for line in printed.split(END_OF_RECORD)[:-1]:
        partition, offset, timestamp, key_bytes, value_bytes, rest = line.split(b" ", 5)
        key, rest = _cut(rest, int(key_bytes))
        value, rest = _cut(rest, int(value_bytes))
        record = Record(
            key=key, value=value, headers=_headers(rest.decode()), timestamp_ms=int(timestamp)
        )
        received.append(Received(partition=int(partition), offset=int(offset), record=record))
    return received


def _cut(rest: bytes, length: int) -> tuple[bytes | None, bytes]:
    return (None, rest) if length < 0 else (rest[:length], rest[length:])


def _headers(printed: str) -> tuple[tuple[str, bytes | None], ...]:
    pairs = (pair.partition("=") for pair in printed.split(",") if pair)
    return tuple((name, None if value == "NULL" else value.encode()) for name, _, value in pairs)
