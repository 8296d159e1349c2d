"""The records that every client writes and every client must read back, byte for byte."""

from dataclasses import dataclass, replace

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HOUR_MS = 3_600_000
BASE_TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record as a user sees it."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = BASE_TIMESTAMP_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A record and where it was found."""

    partition: int
    offset: int
    record: Record


ALL_BYTES = bytes(range(256))

SAMPLES: tuple[Record, ...] = tuple(
    replace(record, timestamp_ms=BASE_TIMESTAMP_MS + number * HOUR_MS)
    for number, record in enumerate(
        (
            Record(value=b"plain"),
            Record(key=b"key", value=b"value"),
            Record(key=b"tombstone", value=None),
            Record(key=None, value=None),
            Record(key=b"", value=b""),
            Record(key=ALL_BYTES, value=ALL_BYTES),
            Record(key="schlüssel".encode(), value="wert ☃".encode()),
            Record(
                key=b"headers",
                value=b"v",
                headers=(("one", b"1"), ("two", b"2"), ("one", b"again")),
            ),
            Record(
                key=b"empty headers",
                value=b"v",
                headers=(("empty", b""), ("null", None), ("ünicode", b"x")),
            ),
            Record(key=b"long", value=b"0123456789" * 20_000),
        )
    )
)


def numbered(count: int, prefix: str = "value") -> tuple[Record, ...]:
    """Records that can be told apart by their value."""
    return tuple(Record(key=b"%d" % n, value=f"{prefix}-{n}".encode()) for n in range(count))
