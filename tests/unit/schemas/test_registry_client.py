"""The registry client over a transport that answers from a table."""

import json
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from headrace.schemas.registry_client import (
    JSON_SCHEMA,
    MISSING_TTL_S,
    PROTOBUF,
    NamedSchema,
    Reference,
    RegisteredSchema,
    RegistryRefused,
    Schema,
    SchemaRegistryClient,
)
from headrace.schemas.registry_transport import Answer, RegistryUnreachable
from headrace.schemas.unknown_id_budget import A_SECOND, BURST

GUID = UUID("89791762-2336-186f-9674-299b90a802e2")


class Table:
    """Answers by method and path; notes what was asked."""

    def __init__(self, answers: dict[tuple[str, str], Any]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Any] = []

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        self.asked.append((method, path))
        self.bodies.append(None if body is None else json.loads(body))
        found = self.answers.get((method, path))
        if found is None:
            return Answer(404, b'{"error_code":40403,"message":"Schema not found"}')
        return found if isinstance(found, Answer) else Answer(200, json.dumps(found).encode())

    def close(self) -> None:
        pass


def test_the_schema_of_an_id_is_asked_for_once() -> None:
    table = Table({("GET", "/schemas/ids/7"): {"schema": '"int"', "guid": str(GUID)}})
    client = SchemaRegistryClient(table)
    assert client.known(7) is None
    expected = RegisteredSchema(7, Schema('"int"'), GUID)
    assert client.schema(7) == expected
    assert client.schema(7) == expected
    assert client.known(7) == expected
    assert len(table.asked) == 1


def test_an_id_counts_within_the_context_of_a_subject() -> None:
    table = Table(
        {
            ("GET", "/schemas/ids/7"): {"schema": '"int"'},
            ("GET", "/schemas/ids/7?subject=%3A.lab%3As"): {"schema": '"long"'},
        }
    )
    client = SchemaRegistryClient(table)
    assert client.schema(7).schema.text == '"int"'
    assert client.schema(7, subject=":.lab:s").schema.text == '"long"'


def test_a_guid_has_a_path_of_its_own() -> None:
    table = Table({("GET", f"/schemas/guids/{GUID}"): {"schema": "{}", "schemaType": "JSON"}})
    found = SchemaRegistryClient(table).schema(GUID)
    assert found.schema == Schema("{}", JSON_SCHEMA)
    assert found.guid == GUID
    assert found.schema_id is None


def test_an_unknown_schema_is_refused_and_asked_for_again() -> None:
    table, now = Table({}), [0.0]
    client = SchemaRegistryClient(table, clock=lambda: now[0])
    for now[0] in (0.0, MISSING_TTL_S):
        with pytest.raises(RegistryRefused, match="Schema not found; error code: 40403") as refused:
            client.schema(1)
        assert refused.value.status == 404
    assert len(table.asked) == 2


def test_an_unknown_schema_can_be_remembered_for_a_while() -> None:
    table, now = Table({}), [0.0]
    client = SchemaRegistryClient(table, missing_ttl_s=60, clock=lambda: now[0])
    for now[0] in (0.0, 59.0):
        with pytest.raises(RegistryRefused, match="Schema not found; error code: 40403") as refused:
            client.schema(7)
        assert refused.value.status == 404
    assert len(table.asked) == 1
    table.answers["GET", "/schemas/ids/7"] = {"schema": '"int"'}
    now[0] = 60.0
    assert client.schema(7).schema == Schema('"int"')


def test_a_not_found_that_is_none_of_a_registry_is_not_remembered() -> None:
    table = Table({("GET", "/schemas/ids/7"): Answer(404, b"<html>")})
    client = SchemaRegistryClient(table, missing_ttl_s=60, clock=lambda: 0.0)
    with pytest.raises(RegistryRefused):
        client.schema(7)
    table.answers["GET", "/schemas/ids/7"] = {"schema": '"int"'}
    assert client.schema(7).schema == Schema('"int"')


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_a_topic_of_unknown_ids_does_not_flood_the_registry() -> None:
    table, clock = Table({}), Clock()
    client = SchemaRegistryClient(table, clock=clock, sleep=clock.sleep)
    for schema_id in range(BURST + 500):
        with pytest.raises(RegistryRefused, match="40403"):
            client.schema(schema_id)
    assert len(table.asked) == BURST + 500  # each was asked for: no verdict is guessed
    assert clock.now_s == pytest.approx(500 / A_SECOND)
    table.answers["GET", "/schemas/ids/7"] = {"schema": '"int"'}
    assert client.schema(7).schema == Schema('"int"')


def test_known_ids_are_not_kept_waiting() -> None:
    table, clock = Table({}), Clock()
    client = SchemaRegistryClient(table, clock=clock, sleep=clock.sleep)
    table.answers = {("GET", f"/schemas/ids/{each}"): {"schema": '"int"'} for each in range(900)}
    for schema_id in range(900):
        client.schema(schema_id)
    assert clock.now_s == 0


def test_a_reader_that_must_not_wait_is_told_that_the_registry_is_not_asked() -> None:
    table, clock = Table({}), Clock()
    client = SchemaRegistryClient(table, clock=clock, sleep=clock.sleep, max_wait_s=0.0)
    for schema_id in range(BURST):
        with pytest.raises(RegistryRefused):
            client.schema(schema_id)
    with pytest.raises(RegistryUnreachable, match=r"not asked for 0\.02 s, because records named"):
        client.schema(BURST)
    assert len(table.asked) == BURST
    clock.now_s += 1 / A_SECOND
    with pytest.raises(RegistryRefused):
        client.schema(BURST)


def test_an_error_without_a_body_has_the_code_of_its_status() -> None:
    table = Table({("GET", "/schemas/ids/1"): Answer(401, b"<html>")})
    with pytest.raises(RegistryRefused) as refused:
        SchemaRegistryClient(table).schema(1)
    assert (refused.value.code, refused.value.message) == (401, "HTTP 401")


@pytest.mark.parametrize("body", [b"<html>", b'{"id":"x"}', b"{}"])
def test_an_answer_that_is_none_of_a_registry_is_told_apart(body: bytes) -> None:
    table = Table({("GET", "/schemas/ids/1"): Answer(200, body)})
    with pytest.raises(RegistryUnreachable):
        SchemaRegistryClient(table).schema(1)


def test_a_registration_is_sent_once_and_makes_the_newest_version_unknown() -> None:
    latest = ("GET", "/subjects/a%2Fb-value/versions/latest")
    table = Table(
        {
            latest: {"schema": '"int"', "id": 1, "version": 1, "subject": "a/b-value"},
            ("POST", "/subjects/a%2Fb-value/versions?normalize=false"): {"id": 2},
        }
    )
    client = SchemaRegistryClient(table, latest_ttl_s=1000, clock=lambda: 0.0)
    client.latest("a/b-value")
    client.latest("a/b-value")
    assert table.asked == [latest]
    schema = Schema("syntax…", PROTOBUF, (Reference("o.proto", "o", 3),))
    assert client.register("a/b-value", schema).schema_id == 2
    assert client.register("a/b-value", schema) == RegisteredSchema(2, schema, subject="a/b-value")
    assert table.bodies[1] == {
        "schema": "syntax…",
        "schemaType": "PROTOBUF",
        "references": [{"name": "o.proto", "subject": "o", "version": 3}],
    }
    client.latest("a/b-value")
    assert table.asked.count(latest) == 2
    assert len(table.asked) == 3


def test_the_newest_version_is_asked_for_again_after_a_while() -> None:
    now = 0.0
    table = Table({("GET", "/subjects/s/versions/latest"): {"schema": '"int"', "id": 1}})
    client = SchemaRegistryClient(table, latest_ttl_s=5.0, clock=lambda: now)
    client.latest("s")
    now = 4.9
    client.latest("s")
    assert len(table.asked) == 1
    now = 5.0
    client.latest("s")
    assert len(table.asked) == 2


def test_a_look_up_gives_the_version() -> None:
    table = Table({("POST", "/subjects/s?normalize=true"): {"subject": "s", "id": 4, "version": 2}})
    client = SchemaRegistryClient(table)
    for _ in range(2):
        found = client.look_up("s", Schema('"int"'), normalize=True)
        assert found == RegisteredSchema(4, Schema('"int"'), None, "s", 2)
    assert len(table.asked) == 1


def test_references_come_in_the_order_in_which_they_are_needed() -> None:
    def version(subject: str) -> tuple[str, str]:
        return ("GET", f"/subjects/{subject}/versions/1?deleted=true")

    def body(text: str, *names: str) -> dict[str, Any]:
        references = [{"name": name, "subject": name, "version": 1} for name in names]
        return {"schema": text, "references": references}

    table = Table(
        {
            version("a"): body("A", "b", "c"),
            version("b"): body("B", "c"),
            version("c"): body("C"),
        }
    )
    client = SchemaRegistryClient(table)
    found = client.dependencies(Schema("root", references=(Reference("a", "a", 1),)))
    assert [(each.name, each.schema.text) for each in found] == [("c", "C"), ("b", "B"), ("a", "A")]
    assert isinstance(found[0], NamedSchema)


def test_references_are_relative_to_the_context_of_the_schema() -> None:
    def version(subject: str) -> tuple[str, str]:
        return ("GET", f"/subjects/{quote(subject, safe='')}/versions/1?deleted=true")

    def refers(name: str, subject: str) -> list[dict[str, Any]]:
        return [{"name": name, "subject": subject, "version": 1}]

    table = Table(
        {
            version(":.sales:a"): {"schema": "A", "references": refers("b", ":.shared:b")},
            version(":.shared:b"): {"schema": "B", "references": refers("c", "c")},
            version(":.shared:c"): {"schema": "C"},
        }
    )
    root = Schema("root", references=(Reference("a", "a", 1),))
    found = SchemaRegistryClient(table).dependencies(root, context=".sales")
    assert [each.name for each in found] == ["c", "b", "a"]


def test_references_in_a_circle_end() -> None:
    path = ("GET", "/subjects/a/versions/1?deleted=true")
    a = {"name": "a", "subject": "a", "version": 1}
    client = SchemaRegistryClient(Table({path: {"schema": "A", "references": [a]}}))
    found = client.dependencies(Schema("root", references=(Reference("a", "a", 1),)))
    assert [each.name for each in found] == ["a"]


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    table = Table({("GET", f"/schemas/ids/{n}"): {"schema": '"int"'} for n in range(3)})
    client = SchemaRegistryClient(table, cache_capacity=2)
    for number in (0, 1, 0, 2, 0):
        client.schema(number)
    assert [path for _, path in table.asked] == [f"/schemas/ids/{n}" for n in (0, 1, 2)]
    client.schema(1)
    assert len(table.asked) == 4
