"""Which id and version a schema gets, what it takes over from earlier versions, and when it is refused."""

from typing import Any

import pytest

from headrace.registry.rules.submitted import SubmittedReference, SubmittedSchema
from headrace.registry.state.metadata import Metadata, RuleSet
from tests.unit.registry.world import INT, LONG, STRING, World, code_of


@pytest.fixture
def world() -> World:
    return World()


def properties(**values: str) -> Metadata:
    return Metadata(properties=values)


def test_ids_belong_to_schemas_and_versions_to_subjects(world: World) -> None:
    assert world.register("a") == (1, 1)
    assert world.register("b") == (1, 1)
    assert world.register("b", LONG) == (2, 2)
    assert world.register("a") == (1, 1)
    assert world.register(":.c:a") == (1, 1)
    assert world.register("a", LONG) == (2, 2)


def test_registering_again_writes_nothing(world: World) -> None:
    world.register("a")
    before = len(world.written)
    world.register("a", ' "int" ')
    assert len(world.written) == before


def test_a_deleted_version_is_not_given_again_and_is_forgotten(world: World) -> None:
    world.register("a")
    world.register("a", LONG)
    world.delete("a")
    assert world.register("a") == (1, 3)
    assert list(world.registry.subjects.versions("a", deleted=True)) == [2, 3]


def test_an_incompatible_schema_is_refused_unless_it_is_forced(world: World) -> None:
    world.register("a")
    assert code_of(lambda: world.register("a", STRING)) == 40901
    found = world.submit("a", SubmittedSchema(schema=STRING), force=True)
    assert found.number == 2


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("", {}),
        ("nonsense", {}),
        (INT, {"schema_type": "OTHER"}),
        (INT, {"references": (SubmittedReference("n", "missing", 1),)}),
        (INT, {"references": (SubmittedReference("n", "missing"),)}),
        (INT, {"version": 7}),
    ],
)
def test_invalid_schemas(world: World, text: str, more: dict[str, Any]) -> None:
    assert code_of(lambda: world.register("a", text, **more)) == 42201


def test_a_schema_that_is_too_large(world: World) -> None:
    assert code_of(lambda: world.register("a", '"' + "x" * 2**20 + '"')) == 42209


def test_metadata_are_inherited_and_completed(world: World) -> None:
    world.configure(
        "a", default_metadata=properties(d="1", k="1"), override_metadata=properties(o="1")
    )
    first = world.submit("a", SubmittedSchema(schema=INT, metadata=properties(k="2", o="2")))
    assert first.schema.metadata == properties(d="1", k="2", o="1")
    second = world.submit("a", SubmittedSchema(schema=LONG))
    assert second.schema.metadata == first.schema.metadata


def test_a_schema_without_text_is_the_latest_one_with_other_metadata(world: World) -> None:
    assert code_of(lambda: world.submit("a", SubmittedSchema(metadata=properties(k="1")))) == 42201
    world.register("a", LONG)
    found = world.submit("a", SubmittedSchema(metadata=properties(k="1")))
    assert (found.schema.text, found.number, found.version.schema_id) == (LONG, 2, 2)


def test_metadata_name_the_version_that_was_asked_for(world: World) -> None:
    found = world.submit("a", SubmittedSchema(schema=INT, version=1))
    assert found.schema.metadata == properties(**{"confluent:version": "1"})
    assert world.find("a", INT) == 1
    second = world.submit("a", SubmittedSchema(schema=LONG))
    assert second.schema.metadata == properties(**{"confluent:version": "2"})
    assert code_of(lambda: world.register("a", LONG, version=2)) == 42201


def test_empty_metadata_and_an_empty_rule_set_have_one_digest_but_two_ids(world: World) -> None:
    plain = world.submit("a", SubmittedSchema(schema=INT, metadata=Metadata()))
    ruled = world.submit("b", SubmittedSchema(schema=INT, rule_set=RuleSet()))
    assert plain.schema.digest == ruled.schema.digest
    assert plain.version.schema_id != ruled.version.schema_id


def test_only_schemas_of_the_same_group_are_compared(world: World) -> None:
    world.configure("a", compatibility_group="major")
    world.register("a", metadata=properties(major="1"))
    assert world.register("a", STRING, metadata=properties(major="2")) == (2, 2)
    assert code_of(lambda: world.register("a", STRING, metadata=properties(major="1"))) == 40901


def test_reserved_fields_are_held(world: World) -> None:
    world.configure("a", validate_fields=True)
    record = '{"type":"record","name":"R","fields":[{"name":"x","type":"int","default":1}]}'
    reserved = properties(**{"confluent:reserved": "y"})
    world.register("a", record, metadata=reserved)
    assert code_of(lambda: world.register("a", record, metadata=properties(k="1"))) == 40901
    other = record.replace('"x"', '"y"')
    assert code_of(lambda: world.register("a", other, metadata=reserved)) == 40901


def test_references_are_stored_with_the_version_that_was_the_latest(world: World) -> None:
    world.register("a", '{"type":"enum","name":"E","symbols":["X"]}')
    latest = (SubmittedReference("E", "a", -1),)
    found = world.submit(
        "b", SubmittedSchema(schema='{"type":"array","items":"E"}', references=latest)
    )
    assert [each.version for each in found.schema.references] == [1]
    written_out = '{"type":"array","items":{"type":"enum","name":"E","symbols":["X"]}}'
    assert world.find("b", written_out) == 1
    assert world.register("b", written_out) == (2, 1)


def test_modes_of_registrations(world: World) -> None:
    world.register("a")
    for mode in ("READONLY", "READONLY_OVERRIDE"):
        world.set_mode(None, mode)
        assert code_of(lambda: world.register("a", LONG)) == 42205
    world.set_mode(None, None)
    assert code_of(lambda: world.register("a", LONG, id=9, version=9)) == 42205
    world.set_mode("a", "IMPORT")
    assert code_of(lambda: world.register("a", LONG)) == 42205
    assert world.register("a", STRING, id=9, version=9) == (9, 9)
    assert code_of(lambda: world.register("a", LONG, id=9, version=10)) == 42205
