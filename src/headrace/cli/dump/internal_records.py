"""Records of Kafka's internal topics as the JSON that `kafka-dump-log` prints: `__consumer_offsets`, `__transaction_state`.

Owns the tables of their fields and a reader that follows them. It only shows; what the records mean to a group is
`coordinator/group/stored_records.py`, which reads the same bytes into values.
"""

import base64
import json
import struct
from typing import Any, Final, NamedTuple
from uuid import UUID

from headrace.ids import text_of_id

_NUMBERS: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}
_NEWEST: Final = 2**15
DELETED: Final = "<DELETE>"


class Field(NamedTuple):
    """A field, in the order of the wire. `fields` are those of the elements of an array of structs."""

    name: str
    kind: str  # a number's type, string, bytes, uuid, or [] before one of them
    since: int = 0
    until: int = _NEWEST
    fields: "tuple[Field, ...]" = ()
    tag: int | None = None
    default: Any = None  # of a tagged field


class Layout(NamedTuple):
    """Fields, and the version from which lengths are varints and tagged fields follow."""

    fields: tuple[Field, ...]
    last_version: int
    flexible_from: int = _NEWEST


class Unreadable(Exception):
    """The bytes are not what the table says."""


_OFFSET_KEY = Layout(
    (Field("group", "string"), Field("topic", "string"), Field("partition", "int32")), 1
)
_OFFSET_VALUE = Layout(
    (
        Field("offset", "int64"),
        Field("leaderEpoch", "int32", 3),
        Field("metadata", "string"),
        Field("commitTimestamp", "int64"),
        Field("expireTimestamp", "int64", 1, 1),
        Field("topicId", "uuid", 4, tag=0, default="AAAAAAAAAAAAAAAAAAAAAA"),
    ),
    last_version=4,
    flexible_from=4,
)
_GROUP_KEY = Layout((Field("group", "string"),), 2)
_MEMBER = (
    Field("memberId", "string"),
    Field("groupInstanceId", "string", 3),
    Field("clientId", "string"),
    Field("clientHost", "string"),
    Field("rebalanceTimeout", "int32", 1),
    Field("sessionTimeout", "int32"),
    Field("subscription", "bytes"),
    Field("assignment", "bytes"),
)
_GROUP_VALUE = Layout(
    (
        Field("protocolType", "string"),
        Field("generation", "int32"),
        Field("protocol", "string"),
        Field("leader", "string"),
        Field("currentStateTimestamp", "int64", 2),
        Field("members", "[]", fields=_MEMBER),
    ),
    last_version=4,
    flexible_from=4,
)
_TRANSACTION_KEY = Layout((Field("transactionalId", "string"),), 0)
_TRANSACTION_VALUE = Layout(
    (
        Field("producerId", "int64"),
        Field("previousProducerId", "int64", 1, tag=0, default=-1),
        Field("nextProducerId", "int64", 1, tag=1, default=-1),
        Field("producerEpoch", "int16"),
        Field("nextProducerEpoch", "int16", 1, tag=3, default=-1),
        Field("transactionTimeoutMs", "int32"),
        Field("transactionStatus", "int8"),
        Field(
            "transactionPartitions",
            "[]",
            fields=(Field("topic", "string"), Field("partitionIds", "[]int32")),
        ),
        Field("transactionLastUpdateTimestampMs", "int64"),
        Field("transactionStartTimestampMs", "int64"),
        Field("clientTransactionVersion", "int16", 1, tag=2, default=0),
    ),
    last_version=1,
    flexible_from=1,
)
_PARTITIONS = (Field("topic", "string"), Field("partitions", "[]int32"))
_SUBSCRIPTION = Layout(
    (
        Field("topics", "[]string"),
        Field("userData", "bytes"),
        Field("ownedPartitions", "[]", 1, fields=_PARTITIONS),
        Field("generationId", "int32", 2),
        Field("rackId", "string", 3),
    ),
    last_version=3,
)
_ASSIGNMENT = Layout(
    (Field("assignedPartitions", "[]", fields=_PARTITIONS), Field("userData", "bytes")),
    last_version=3,
)

# By the number that a key begins with.
OFFSETS: Final = {
    0: (_OFFSET_KEY, _OFFSET_VALUE),
    1: (_OFFSET_KEY, _OFFSET_VALUE),
    2: (_GROUP_KEY, _GROUP_VALUE),
}
TRANSACTIONS: Final = {0: (_TRANSACTION_KEY, _TRANSACTION_VALUE)}

Tables = dict[int, tuple[Layout, Layout]]


def show(tables: Tables, key: bytes | None, value: bytes | None, offset: int) -> tuple[str, str]:
    """A record's key and value as text. What cannot be read is told in their place."""
    if key is None or len(key) < 2:
        return f"Error at offset {offset}, skipping. Could not read version from key's buffer.", ""
    number = int.from_bytes(key[:2], signed=True)
    if number not in tables:
        return f"Unknown record type {number} at offset {offset}, skipping.", ""
    key_layout, value_layout = tables[number]
    try:
        data = _read(key, key_layout, 0, "key")
        value_text = DELETED if value is None else _value_text(value_layout, value, number)
        return _json({"type": str(number), "data": data}), value_text
    except Unreadable as wrong:
        return f"Error at offset {offset}, skipping. {wrong}", ""


def _value_text(layout: Layout, value: bytes, number: int) -> str:
    if len(value) < 2:
        raise Unreadable("Could not read version from value's buffer.")
    version = int.from_bytes(value[:2], signed=True)
    if not 0 <= version <= layout.last_version:
        raise Unreadable(f"Found an unknown record version {version} for {number} type")
    data = _read(value, layout, version, "value")
    if layout is _GROUP_VALUE and data["protocolType"] == "consumer":
        for member in data["members"]:
            member["subscription"] = _embedded(_SUBSCRIPTION, member["subscription"])
            member["assignment"] = _embedded(_ASSIGNMENT, member["assignment"])
    return _json({"version": str(version), "data": data})


def _read(source: bytes, layout: Layout, version: int, part: str) -> dict[str, Any]:
    try:
        return _Reader(source, 2).struct(layout, version)
    except (Unreadable, UnicodeDecodeError) as wrong:
        raise Unreadable(
            f"Could not read record with version {version} from {part}'s buffer due to: {wrong}."
        ) from wrong


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _embedded(layout: Layout, text: str | None) -> Any:
    """What a consumer put there; what is not a consumer's stays as it is."""
    if not text:
        return text
    reader = _Reader(base64.b64decode(text))
    try:
        version = reader.number("int16")
        return text if version < 0 else reader.struct(layout, min(version, layout.last_version))
    except (Unreadable, UnicodeDecodeError):
        return text


class _Reader:
    """Reads one field after the other."""

    def __init__(self, source: bytes, position: int = 0) -> None:
        self._source = source
        self._position = position

    def struct(self, layout: Layout, version: int) -> dict[str, Any]:
        is_flexible = version >= layout.flexible_from
        return self._fields(layout.fields, version, is_flexible=is_flexible)

    def _fields(
        self, fields: tuple[Field, ...], version: int, *, is_flexible: bool
    ) -> dict[str, Any]:
        present = [field for field in fields if field.since <= version <= field.until]
        found = {
            field.name: field.default
            if field.tag is not None
            else self._value(field, version, is_flexible=is_flexible)
            for field in present
        }
        if is_flexible:
            tagged = {field.tag: field for field in present if field.tag is not None}
            for _ in range(self._varint()):
                tag, size = self._varint(), self._varint()
                end = self._position + size
                if tag in tagged:
                    found[tagged[tag].name] = self._value(tagged[tag], version, is_flexible=True)
                self._position = end
            # Kafka leaves out what has its default.
            for field in tagged.values():
                if found[field.name] == field.default:
                    del found[field.name]
        return found

    def _value(self, field: Field, version: int, *, is_flexible: bool) -> Any:
        kind = field.kind
        if not kind.startswith("[]"):
            return self._plain(kind, is_flexible=is_flexible)
        count = self._length("int32", is_flexible=is_flexible)
        if count < 0:
            return None
        if field.fields:
            return [
                self._fields(field.fields, version, is_flexible=is_flexible) for _ in range(count)
            ]
        return [self._plain(kind[2:], is_flexible=is_flexible) for _ in range(count)]

    def _plain(self, kind: str, *, is_flexible: bool) -> Any:
        if kind in _NUMBERS:
            return self.number(kind)
        if kind == "uuid":
            return text_of_id(UUID(bytes=bytes(self._take(16))))
        size = self._length("int16" if kind == "string" else "int32", is_flexible=is_flexible)
        if size < 0:
            return None
        data = self._take(size)
        return data.decode() if kind == "string" else base64.b64encode(data).decode()

    def number(self, kind: str) -> int:
        layout = _NUMBERS[kind]
        return int(layout.unpack(self._take(layout.size))[0])

    def _length(self, kind: str, *, is_flexible: bool) -> int:
        return self._varint() - 1 if is_flexible else self.number(kind)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            [byte] = self._take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _take(self, size: int) -> bytes:
        data = self._source[self._position : self._position + size]
        if len(data) < size:
            raise Unreadable("null")  # what Java's says of bytes that end too early
        self._position += size
        return data
