"""A message as plain data that can be compared between two brokers: what a broker chose by itself gets an alias.

Ids are replaced in order of appearance ("<member 1>"), so that two answers which name the same member still agree on
that. Texts of errors and documentation count only by their presence, and we may explain an error that Kafka does not.
Arrays of structs are sorted: the protocol promises no order for them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from headrace.errors import CorruptBatch
from headrace.ids import NO_PRODUCER_ID, NO_TOPIC_ID
from headrace.records.batch_reader import read_batch
from headrace.records.batch_view import BatchHeader, headers_in
from headrace.wire.message import Message

Plain: TypeAlias = dict[str, Any]

# Fields that hold an id chosen by the broker: what kind of thing they identify, and the value that means none.
IDS: dict[str, tuple[str, object]] = {
    "topic_id": ("topic id", NO_TOPIC_ID),
    "member_id": ("member", ""),
    "leader": ("member", ""),
    "producer_id": ("producer", NO_PRODUCER_ID),
    "session_id": ("fetch session", 0),
    "cluster_id": ("cluster", None),
    "log_dir": ("log dir", None),
    "port": ("port", -1),
}
# Fields that tell what a struct is about.
SUBJECTS = (
    *("topic", "name", "topic_name", "group_id", "resource_type", "resource_name", "api_key"),
    *("partition_index", "partition", "index", "node_id", "broker_id", "key"),
)
# Fields of which only the presence counts.
TEXT = "<text>"
TEXTS = ("error_message", "batch_index_error_message", "documentation")
# Fields whose value is a fact of the machine or the moment; negative means absent.
MEASURES = (
    "log_append_time_ms",
    "total_bytes",
    "usable_bytes",
    "finalized_features_epoch",
    "last_timestamp",
)


@dataclass(slots=True)
class Aliases:
    """The names that one transcript gives to the ids of one broker."""

    prefix: str
    numbered: bool = True
    known: dict[str, dict[object, str]] = field(default_factory=dict)

    def plain(self, message: Message, version: int) -> Plain:
        """The fields that this version of the message has."""
        return self._struct(message, version)

    def _struct(self, struct: Any, version: int) -> Plain:
        shown: Plain = {}
        for name, _type, first, last, *_ in struct.SCHEMA:
            if first <= version <= last:
                shown[name] = self._value(name, getattr(struct, name), version)
        return shown

    def _value(self, name: str, value: Any, version: int) -> Any:
        if hasattr(value, "SCHEMA"):
            return self._struct(value, version)
        if name == "records":
            return self._records(value)
        if isinstance(value, list | tuple):
            return self._array(name, value, version)
        if name in IDS and value != IDS[name][1]:
            return self._alias(IDS[name][0], value)
        if name in TEXTS:
            return None if value is None else TEXT
        if name in MEASURES and value >= 0:
            return "<measured>"
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).replace(self.prefix.encode(), b"").hex()
        return value.replace(self.prefix, "") if isinstance(value, str) else _simple(value)

    def _array(self, name: str, values: Sequence[Any], version: int) -> list[Any]:
        if any(hasattr(value, "SCHEMA") for value in values):
            # Sorted before new ids get their numbers: these must not depend on the order of the answer.
            unnumbered = Aliases(self.prefix, numbered=False, known=self.known)
            values = sorted(values, key=lambda v: _order(unnumbered._struct(v, version)))
        return [self._value(name, value, version) for value in values]

    def _alias(self, kind: str, value: object) -> str:
        known = self.known.setdefault(kind, {})
        if not self.numbered:
            return known.get(value, f"<{kind}>")
        return known.setdefault(value, f"<{kind} {len(known) + 1}>")

    def _records(self, records: bytes | memoryview | None) -> list[Plain] | None:
        if records is None:
            return None
        batches = []
        for position, header in _whole_batches(records):
            fields = header._asdict()
            for name in ("crc", "length"):  # follow from the rest, or from how a codec packs
                del fields[name]
            fields["producer_id"] = self._value("producer_id", header.producer_id, 0)
            batch = bytes(records[position : position + header.size])
            fields["records"] = [[_shown(part) for part in record] for record in read_batch(batch)]
            batches.append(fields)
        return batches


def _order(struct: Plain) -> tuple[str, str]:
    """By what a struct is about, so that a difference in the rest of it does not hide which one it is."""
    about = {name: struct[name] for name in SUBJECTS if name in struct}
    return json.dumps(about), json.dumps(struct, sort_keys=True)


def _whole_batches(records: bytes | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Kafka may cut the last batch of an answer in the middle; clients skip that rest, and so do we."""
    try:
        yield from headers_in(records)
    except CorruptBatch:
        pass


def _simple(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value


def _shown(part: object) -> object:
    return part.hex() if isinstance(part, bytes) else part


def differences(left: Any, right: Any, path: str = "") -> list[str]:
    """Where our plain value (left) differs from Kafka's, one line each."""
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            line
            for name in left | right
            for line in differences(
                left.get(name, "(absent)"), right.get(name, "(absent)"), f"{path}.{name}"
            )
        ]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return [line for n, (a, b) in pairs for line in differences(a, b, f"{path}[{n}]")]
    if right is None and left == TEXT:
        return []
    return [] if left == right else [f"{path}: {left!r} != {right!r}"]


Pick: TypeAlias = Callable[[Plain], Any]
