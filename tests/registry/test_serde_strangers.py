"""Four serializers that we did not write register, write, read and evolve; each reads what the others wrote."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.registry.serde_strangers import (
    AVRO,
    NAMES,
    READERS,
    SCHEMAS,
    VALUES,
    WRITERS,
    StrangerRefused,
    Strangers,
)
from tests.support.registry_process import RegistryProcess

pytestmark = pytest.mark.filterwarnings("ignore")  # of the strangers' own libraries

WIDER = {**json.loads(AVRO), "fields": [*json.loads(AVRO)["fields"], {"name": "paid", "type": "boolean", "default": True}]}  # fmt: skip
BROKEN = json.dumps({**json.loads(AVRO), "fields": [{"name": "id", "type": "string"}]})


@pytest.fixture(scope="session")
def strangers(
    registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Strangers]:
    with ExitStack() as stack:
        yield Strangers(registry.url, tmp_path_factory.mktemp("strangers"), stack)


def subject_of() -> str:
    return f"t-{uuid.uuid4()}-value"


@pytest.mark.parametrize(
    ("kind", "writer", "reader"),
    [
        (kind, writer, reader)
        for kind in SCHEMAS
        for writer, reader in itertools.product(WRITERS[kind], READERS[kind])
    ],
)
def test_each_reads_what_the_others_wrote(
    strangers: Strangers, kind: str, writer: str, reader: str
) -> None:
    subject = subject_of()
    data = strangers(writer).write(subject, kind, SCHEMAS[kind], VALUES[kind])
    own = SCHEMAS[kind] if reader == "python" else None
    assert strangers(reader).read(subject, kind, data, own) == VALUES[kind]


@pytest.mark.parametrize("name", NAMES)
def test_each_registers_and_evolves(
    strangers: Strangers, registry: RegistryProcess, name: str
) -> None:
    subject = subject_of()
    one = strangers(name)
    first = one.write(subject, "AVRO", AVRO, VALUES["AVRO"])
    again = one.write(subject, "AVRO", AVRO, VALUES["AVRO"])
    assert first == again
    newer = one.write(subject, "AVRO", json.dumps(WIDER), {**VALUES["AVRO"], "paid": False})
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1, 2])
    assert one.read(subject, "AVRO", first, json.dumps(WIDER)) == {**VALUES["AVRO"], "paid": True}
    assert one.read(subject, "AVRO", newer, AVRO) == VALUES["AVRO"]
    with pytest.raises(StrangerRefused, match=r"409|incompatible"):
        one.write(subject, "AVRO", BROKEN, {"id": "x"})
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1, 2])
