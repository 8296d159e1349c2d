"""Inputs for a broker, each a function of the seed and its number, so that any of them can be made again.

An input is one frame, or what pretends to be one. `WELL_FORMED` must be answered; anything else may also cost the sender
its connection. `DESYNC` inputs lie about their length: nothing behind them on their connection means anything.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from random import Random
from typing import NamedTuple
from uuid import UUID

from headrace.broker import api_table
from headrace.wire.api_keys import ApiKey, request_class
from headrace.wire.codec import encode
from headrace.wire.headers import RequestHeader, encode_request_header
from tests.robustness.fuzz_values import Values, sample_batches

TEMPLATES = 1500
LARGEST_FRAME = 100 * 1024 * 1024
# They sync files or touch everything; a tenth of the others' share is plenty.
HEAVY = frozenset(
    (
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
    )
)
# These may keep an answer back for as long as the request says.
MAY_WAIT = frozenset((ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.PRODUCE, ApiKey.SYNC_GROUP))


class Kind(Enum):
    WELL_FORMED = "well-formed"
    MUTATED = "mutated"
    TRUNCATED = "truncated"
    LENGTH_BOMB = "length bomb"
    GARBAGE = "garbage"
    NOT_OFFERED = "not offered"
    DESYNC = "wrong size"


class Input(NamedTuple):
    """One input; `frame` begins with the length."""

    number: int
    kind: Kind
    key: int
    version: int
    frame: bytes

    @property
    def must_be_answered(self) -> bool:
        # Produce may say acks=0, and then an error can only be told by closing.
        return self.kind is Kind.WELL_FORMED and self.key != ApiKey.PRODUCE

    @property
    def may_wait(self) -> bool:
        return self.kind is not Kind.WELL_FORMED or self.key in MAY_WAIT


class FuzzInputs:
    """All inputs of one seed."""

    def __init__(self, seed: int, topic_ids: Sequence[UUID] = ()) -> None:
        self._seed = seed
        self._topic_ids = topic_ids
        self._batches = sample_batches()
        self._keys = [
            key for key in api_table.APIS for _ in range(1 if key in HEAVY else 10)
        ]  # in proportion
        self._makers: list[tuple[int, Callable[[int, Random], Input]]] = [
            (50, self._well_formed),
            (16, self._mutated),
            (10, self._truncated),
            (10, self._length_bomb),
            (6, self._garbage),
            (5, self._not_offered),
            (3, self._desync),
        ]

    def make(self, number: int) -> Input:
        """The input with this number."""
        random = Random(self._seed * 1_000_003 + number)
        weights = [weight for weight, _ in self._makers]
        maker = random.choices(self._makers, weights)[0][1]
        return maker(number, random)

    @cached_property
    def _templates(self) -> list[Input]:
        """Well-formed inputs to be broken: making one anew for each would take most of the time."""
        random = Random(self._seed)
        return [self._well_formed(number, random) for number in range(TEMPLATES)]

    def _well_formed(self, number: int, random: Random) -> Input:
        key = random.choice(self._keys)
        first, last = api_table.versions(key)
        version = random.randint(first, last)
        body = encode(
            Values(random, self._topic_ids, self._batches).message(request_class(key), version),
            version,
        )
        return Input(number, Kind.WELL_FORMED, key, version, framed(key, version, body, random))

    def _broken(self, number: int, kind: Kind, template: Input, payload: bytes) -> Input:
        return Input(number, kind, template.key, template.version, with_length(payload))

    def _mutated(self, number: int, random: Random) -> Input:
        template = random.choice(self._templates)
        payload = bytearray(template.frame[4:])
        for _ in range(random.choice((1, 1, 2, 8))):
            payload[random.randrange(len(payload))] = random.getrandbits(8)
        return self._broken(number, Kind.MUTATED, template, bytes(payload))

    def _truncated(self, number: int, random: Random) -> Input:
        template = random.choice(self._templates)
        payload = template.frame[4:]
        cut = payload[: random.randrange(1, len(payload))]
        return self._broken(number, Kind.TRUNCATED, template, cut)

    def _length_bomb(self, number: int, random: Random) -> Input:
        template = random.choice(self._templates)
        payload = bytearray(template.frame[4:])
        bomb = random.choice(
            (
                b"\x7f\xff\xff\xff",
                b"\x80\x00\x00\x00",
                b"\xff\xff\xff\xfe",
                b"\x00\xff\xff\xff",
                b"\x7f\xff",
                b"\xff\xff\xff\xff\x07",  # varints: 2**31 - 1,
                b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # 2**64 - 1,
                b"\x80" * 12,  # and one without an end
            )
        )
        at = random.randrange(min(8, len(payload)), len(payload) + 1)
        payload[at : at + len(bomb)] = bomb
        return self._broken(number, Kind.LENGTH_BOMB, template, bytes(payload))

    def _garbage(self, number: int, random: Random) -> Input:
        payload = random.randbytes(random.choice((1, 4, 8, 14, 100, 5000)))
        return Input(number, Kind.GARBAGE, -1, -1, with_length(payload))

    def _not_offered(self, number: int, random: Random) -> Input:
        template = random.choice(self._templates)
        key = random.choice(
            (template.key, random.randrange(100), random.randrange(-(2**15), 2**15))
        )
        version = random.choice((-1, 20, 99, 2**15 - 1, -(2**15)))
        payload = (
            key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + template.frame[8:]
        )
        return Input(number, Kind.NOT_OFFERED, key, version, with_length(payload))

    def _desync(self, number: int, random: Random) -> Input:
        template = random.choice(self._templates)
        payload = template.frame[4:]
        length = random.choice(
            (0, -1, -(2**31), 2**31 - 1, LARGEST_FRAME, LARGEST_FRAME + 1, len(payload) + 1, 1, 3)
        )
        frame = length.to_bytes(4, signed=True) + payload
        return Input(number, Kind.DESYNC, template.key, template.version, frame)


def framed(key: int, version: int, body: bytes, random: Random) -> bytes:
    """A request with its header and length."""
    client_id = random.choice((None, "", "fuzz", "client-€"))
    return with_length(encode_request_header(RequestHeader(key, version, 0, client_id)) + body)


def with_length(payload: bytes) -> bytes:
    """The frame that holds this payload."""
    return len(payload).to_bytes(4) + payload


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    """The same frame; one that is too short for the field stays as it is."""
    if len(frame) < 12:
        return frame
    return frame[:8] + correlation_id.to_bytes(4) + frame[12:]
