"""Values that look like what a client would send, and some that do not, by the name and type of a field.

Topics come from a fixed set, so that a hundred thousand requests do not make a hundred thousand topics; whatever else a
string holds has a character that no topic's name may have.
"""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any
from uuid import UUID

from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.wire.schema import FieldSchema, fields_at

TOPICS = tuple(f"fuzz-{number}" for number in range(8))
GROUPS = tuple(f"fuzz-group-{number}" for number in range(12))
# Of topics only, and none that a broker has under the same name and that would stop a bystander's writes.
CONFIGS = ("retention.ms", "segment.bytes", "cleanup.policy", "flush.ms", "no.such.config")
CONFIG_VALUES = ("1", "-1", "9999999999999", "compact", "delete", "compact,delete", "zstd", "true")
OTHER_WORDS = ("", "1", "consumer", "range", "member-1", "instance-1", "__consumer_offsets")
ODD_STRINGS = ("!", "ä€𝄞", "\0", "!" * 250, "€" * 10_000, *(f"!{number}" for number in range(20)))
WORDS = TOPICS + GROUPS + CONFIGS + CONFIG_VALUES + OTHER_WORDS
EPOCHS = (-1, -1, 0, 1)
NUMBERS = {
    "acks": (-1, -1, 0, 1),
    "broker_ids": (-1, 0, 1, 1, 1, 2),
    "count": (-1, 0, 1, 2, 3, 100_000),
    "current_leader_epoch": EPOCHS,
    "leader_epoch": EPOCHS,
    "num_partitions": (-1, 0, 1, 2, 3, 100_000),
    "replica_id": (-1, -1, 1),
    "replication_factor": (-1, 0, 1, 1, 1, 2),
    "resource_type": (0, 2, 2, 4, 16, 32),
    "session_epoch": EPOCHS,
}
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def sample_batches() -> tuple[bytes, ...]:
    """Batches as producers send them, and broken ones."""
    records = records_at(
        0, 1_700_000_000_000, [(b"key", b"value"), (None, b"x" * 200), (b"k", None)]
    )
    whole = [bytes(build_batch(records, BatchOptions(codec=codec))) for codec in range(5)]
    idempotent = BatchOptions(producer_id=7, producer_epoch=0, base_sequence=0)
    transactional = BatchOptions(
        producer_id=8, producer_epoch=0, base_sequence=0, transactional=True
    )
    marker = BatchOptions(producer_id=8, producer_epoch=0, control=True, transactional=True)
    whole += [
        bytes(build_batch(records, options)) for options in (idempotent, transactional, marker)
    ]
    bomb = records_at(0, 0, [(b"key", bytes(8 * 1024 * 1024))])
    whole += [bytes(build_batch(bomb, BatchOptions(codec=codec))) for codec in (1, 3, 4)]
    broken = [
        whole[0][:-1],
        whole[0][:60],
        whole[0] + whole[0],
        whole[1][:-4] + b"oops",
        b"",
        b"\0",
    ]
    wrong_counts = bytearray(whole[0])
    wrong_counts[57:61] = b"\x7f\xff\xff\xff"
    return (*whole, *broken, bytes(wrong_counts))


@cache
def present_fields(cls: Any, version: int) -> tuple[FieldSchema, ...]:
    return tuple(field for field in fields_at(cls, version) if field.is_present)


class Values:
    """Makes messages of any class and version; `topic_ids` are those of topics that exist."""

    def __init__(self, random: Random, topic_ids: Sequence[UUID], batches: Sequence[bytes]) -> None:
        self._random = random
        self._topic_ids = topic_ids
        self._batches = batches

    def message(self, cls: Any, version: int) -> Any:
        """Most fields are set, the others have their default."""
        return cls(
            **{
                field.name: self._value(field, version)
                for field in present_fields(cls, version)
                if self._random.random() < 0.9
            }
        )

    def _value(self, field: FieldSchema, version: int) -> Any:
        if field.is_nullable and self._random.random() < 0.2:
            return None
        if field.is_array:
            count = self._random.choice((0, 1, 1, 1, 2, 5))
            return [self._element(field, version) for _ in range(count)]
        return self._element(field, version)

    def _element(self, field: FieldSchema, version: int) -> Any:
        if field.is_struct:
            return self.message(field.type, version)
        match field.type:
            case "bool":
                return self._random.random() < 0.5
            case "float64":
                return self._random.uniform(-1e9, 1e9)
            case "string":
                return self._string()
            case "bytes":
                return self._random.randbytes(self._random.choice((0, 1, 20, 300)))
            case "records":
                return self._random.choice(self._batches)
            case "uuid":
                return self._uuid()
            case _:
                return self._number(field)

    def _string(self) -> str:
        return self._random.choice(WORDS if self._random.random() < 0.85 else ODD_STRINGS)

    def _uuid(self) -> UUID:
        if self._topic_ids and self._random.random() < 0.7:
            return self._random.choice(self._topic_ids)
        return UUID(int=self._random.choice((0, 1, self._random.getrandbits(128))))

    def _number(self, field: FieldSchema) -> int:
        random = self._random
        name = field.name
        if field.type.startswith("u"):
            return random.getrandbits(int(field.type[4:]))
        bits = BITS[field.type]
        largest = 2 ** (bits - 1) - 1
        if random.random() < 0.08:
            return random.choice((largest, -largest - 1, random.getrandbits(bits - 1), -1))
        if name.endswith("_ms"):
            return random.choice((1000, 1500) if name == "session_timeout_ms" else (0, 1, 5, 20))
        if "bytes" in name:
            return random.choice((0, 1, 1000, 1_000_000))
        return random.choice(NUMBERS.get(name, (0, 0, 0, 1, 1, 2, 3, -1)))
