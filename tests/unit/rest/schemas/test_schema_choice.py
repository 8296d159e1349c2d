"""Which schema is used, over a registry that answers from a table."""

import json
from typing import Any
from uuid import UUID

import pytest

from headrace.rest.errors import RestError
from headrace.rest.payloads.formats import Format
from headrace.rest.payloads.schema_codec import UnusableSchema
from headrace.rest.schemas.schema_choice import SchemaChoice
from headrace.rest.schemas.schema_selector import SchemaSelector, SubjectStrategy
from headrace.schemas.registry_client import SchemaRegistryClient
from headrace.schemas.registry_transport import Answer, RegistryUnreachable
from headrace.schemas.wire_format import Framed

RECORD = '{"type":"record","name":"n.R","fields":[]}'
GUID = UUID("89791762-2336-186f-9674-299b90a802e2")


class Registry:
    """Answers by method and path; None stands for a registry that is away."""

    def __init__(self, answers: dict[str, Any] | None) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        self.asked.append(f"{method} {path}")
        if self.answers is None:
            raise RegistryUnreachable("refused")
        found = self.answers.get(f"{method} {path}")
        if callable(found):
            found = found()
        if found is None:
            return Answer(404, b'{"error_code":40401,"message":"Subject not found."}')
        if isinstance(found, Answer):
            return found
        return Answer(200, json.dumps(found).encode())

    def close(self) -> None:
        pass


def choice(answers: dict[str, Any] | None) -> tuple[SchemaChoice, Registry]:
    registry = Registry(answers)
    return SchemaChoice(SchemaRegistryClient(registry, latest_ttl_s=0)), registry


VALUE = SchemaSelector("t", False)
LOOK_UP = "POST /subjects/t-value?normalize=false"
REGISTER = "POST /subjects/t-value/versions?normalize=false"


def test_by_id_with_the_version_of_the_subject() -> None:
    schemas, registry = choice(
        {
            "GET /schemas/ids/7": {"schema": RECORD},
            LOOK_UP: {"subject": "t-value", "id": 7, "version": 3},
        }
    )
    chosen = schemas.for_writing(VALUE._replace(schema_id=7))
    assert (chosen.subject, chosen.schema_id, chosen.version) == ("t-value", 7, 3)
    assert (chosen.format, chosen.prefix) == (Format.AVRO, b"\x00\x00\x00\x00\x07")
    assert chosen.codec.encode(b"{}") == b""
    schemas.for_writing(VALUE._replace(schema_id=7))
    assert len(registry.asked) == 2


def test_by_id_under_a_subject_of_the_record() -> None:
    schemas, _ = choice(
        {
            "GET /schemas/ids/7": {"schema": RECORD},
            "POST /subjects/t-n.R?normalize=false": {"subject": "t-n.R", "id": 7, "version": 1},
        }
    )
    selector = VALUE._replace(schema_id=7, strategy=SubjectStrategy.TOPIC_RECORD_NAME)
    assert schemas.for_writing(selector).subject == "t-n.R"


def test_by_version_and_the_newest() -> None:
    schemas, registry = choice(
        {
            "GET /subjects/t-value/versions/2?deleted=false": {
                "schema": '"int"',
                "id": 5,
                "version": 2,
            },
            "GET /subjects/t-value/versions/latest": {"schema": '"long"', "id": 6, "version": 3},
        }
    )
    assert schemas.for_writing(VALUE._replace(version=2)).schema_id == 5
    for _ in range(2):
        assert schemas.for_writing(VALUE).version == 3
    assert registry.asked.count("GET /subjects/t-value/versions/latest") == 2


def test_a_text_is_registered_where_it_is_not_known() -> None:
    is_known = False

    def look_up() -> Any:
        return {"subject": "t-value", "id": 9, "version": 1} if is_known else None

    def register() -> Any:
        nonlocal is_known
        is_known = True
        return {"id": 9}

    schemas, registry = choice({LOOK_UP: look_up, REGISTER: register})
    chosen = schemas.for_writing(VALUE._replace(format=Format.AVRO, text='"int"'))
    assert (chosen.schema_id, chosen.version) == (9, 1)
    assert registry.asked == [LOOK_UP, REGISTER, LOOK_UP]


@pytest.mark.parametrize(
    ("selector", "status", "code", "message"),
    [
        (VALUE._replace(schema_id=1), 422, 42207, "fetching schema by id. schemaId = 1\n"),
        (VALUE, 422, 42207, "fetching latest schema version. subject = t-value\n"),
        (VALUE._replace(version=4), 422, 42207, "subject = t-value, version = 4\n"),
        (VALUE._replace(text="s"), 400, 400, "needs a 'type'"),
        (VALUE._replace(text="s", format=Format.AVRO), 422, 42205, "not an Avro schema"),
        (VALUE._replace(text='"int"', format=Format.AVRO), 422, 42207, "registering schema"),
        (VALUE._replace(strategy=SubjectStrategy.RECORD_NAME), 400, 400, "without schema_id"),
        (
            VALUE._replace(text="x" * 2_000_000, format=Format.AVRO),
            422,
            42205,
            "longer than",
        ),
        (
            VALUE._replace(text='"int"', format=Format.AVRO, strategy=SubjectStrategy.RECORD_NAME),
            422,
            42207,
            "no record name",
        ),
    ],
)
def test_what_is_refused(selector: SchemaSelector, status: int, code: int, message: str) -> None:
    schemas, _ = choice({})
    with pytest.raises(RestError) as refused:
        schemas.for_writing(selector)
    assert (refused.value.status, refused.value.code) == (status, code)
    assert message in refused.value.message


def test_a_registry_that_is_away_may_be_back_later() -> None:
    schemas, _ = choice(None)
    with pytest.raises(RestError, match="refused") as refused:
        schemas.for_writing(VALUE)
    assert (refused.value.status, refused.value.code) == (500, 50003)


def test_a_registry_that_forbids() -> None:
    forbidden = Answer(403, b'{"error_code":40301,"message":"no"}')
    schemas, _ = choice({"GET /schemas/ids/1": forbidden})
    with pytest.raises(RestError) as refused:
        schemas.for_writing(VALUE._replace(schema_id=1))
    assert (refused.value.status, refused.value.code) == (403, 40301)


def test_references_are_made_known() -> None:
    other = '{"type":"record","name":"o.O","fields":[{"name":"x","type":"int"}]}'
    root = '{"type":"record","name":"M","fields":[{"name":"o","type":"o.O"}]}'
    reference = {"name": "o.O", "subject": "other", "version": 1}
    schemas, _ = choice(
        {
            f"GET /schemas/guids/{GUID}": {"schema": root, "references": [reference]},
            "GET /subjects/other/versions/1?deleted=true": {"schema": other},
        }
    )
    ready = schemas.for_reading(GUID)
    assert ready.codec.decode(Framed(GUID, b"\x0a")) == {"o": {"x": 5}}


def test_a_type_that_is_not_known() -> None:
    schemas, _ = choice({"GET /schemas/ids/1": {"schema": "x", "schemaType": "XML"}})
    with pytest.raises(UnusableSchema, match="type XML"):
        schemas.for_reading(1)


def test_to_read_with_a_schema_that_the_registry_does_not_have() -> None:
    schemas, _ = choice({})
    with pytest.raises(UnusableSchema, match="schemaId = 7"):
        schemas.for_reading(7)


def test_to_read_while_the_registry_is_away() -> None:
    schemas, _ = choice(None)
    with pytest.raises(RestError) as refused:
        schemas.for_reading(7)
    assert refused.value.code == 50003
