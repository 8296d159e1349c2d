"""The data of every run: text like that of an application's events, the same bytes in every run and for every server."""

import json
from functools import cache
from pathlib import Path
from random import Random

POOL_BYTES = 4 * 1024 * 1024
MAX_DISTINCT = 10_000
_SEED = 8
_CITIES = ("Aachen", "Bergen", "Cádiz", "Delft", "Évora", "Fano", "Gent", "Hull")


@cache
def payloads(size: int) -> tuple[bytes, ...]:
    """Distinct records of exactly this size; zstd makes about a third of them."""
    chance = Random(_SEED * size)
    count = max(1, min(MAX_DISTINCT, POOL_BYTES // size))
    return tuple(_event(chance, size) for _ in range(count))


def _event(chance: Random, size: int) -> bytes:
    text = b""
    while len(text) < size:
        text += _line(chance)
    return text[:size]


def _line(chance: Random) -> bytes:
    event = {
        "id": f"{chance.getrandbits(64):016x}",
        "user": chance.randrange(1_000_000),
        "city": chance.choice(_CITIES),
        "amount": round(chance.expovariate(0.02), 2),
        "state": chance.choice(("placed", "paid", "sent", "returned")),
    }
    # ASCII without line ends: the same records go through Kafka's tool, which reads them as lines.
    return json.dumps(event).encode()


def write_lines(path: Path, size: int) -> None:
    """The records as a file with one a line."""
    path.write_bytes(b"\n".join(payloads(size)))
