"""The registry's rules: every refusal with its code, and what a write consists of."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.registry import errors
from headrace.registry.compatibility import Level
from headrace.registry.decisions import Registry, Wanted, Write
from headrace.registry.judge import judge
from headrace.registry.names import SubjectName, parse_subject
from headrace.registry.records import DeleteSubjectKey, Entry, Reference, SchemaKey
from headrace.registry.subjects import Subjects

INT, LONG, STRING = '"int"', '"long"', '"string"'


class World:
    """A registry whose writes are read back at once."""

    def __init__(self, **options: Any) -> None:
        self.registry = Registry(Subjects(), **options)
        self.written: list[Entry] = []

    def apply(self, decision: Write[Any]) -> Any:
        for entry in decision.entries:
            self.registry.subjects.apply(entry)
        self.written += decision.entries
        return decision.answer

    def register(self, subject: str, text: str = INT, **more: Any) -> tuple[int, int]:
        name, wanted = parse_subject(subject), Wanted(schema=text, **more)
        judgement = judge(self.registry.compatibility_question(name, wanted))
        answer: tuple[int, int] = self.apply(self.registry.register(name, wanted, judgement))
        return answer

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]:
        name = parse_subject(subject)
        deleted: list[int] = self.apply(self.registry.delete_subject(name, permanent=permanent))
        return deleted

    def delete_version(self, subject: str, version: str, *, permanent: bool = False) -> int:
        name = parse_subject(subject)
        answer: int = self.apply(self.registry.delete_version(name, version, permanent=permanent))
        return answer

    def mode(self, scope: str | None, mode: str, *, force: bool = True) -> None:
        self.apply(self.registry.set_mode(scope, mode, force=force))


@pytest.fixture
def world() -> World:
    return World()


def code_of(action: Callable[[], object]) -> int:
    with pytest.raises(errors.RegistryError) as refused:
        action()
    assert refused.value.status == int(str(refused.value.code)[:3])
    return refused.value.code


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


def test_a_deleted_version_is_not_given_again(world: World) -> None:
    world.register("a")
    world.register("a", LONG)
    world.delete("a")
    assert world.register("a") == (1, 3)


def test_an_incompatible_schema_is_refused(world: World) -> None:
    world.register("a")
    assert code_of(lambda: world.register("a", STRING)) == 40901


def test_levels_of_subject_context_and_all(world: World) -> None:
    registry = world.registry
    world.apply(registry.set_config(None, {"compatibility_level": "FULL"}))
    assert registry.level("a") is Level.FULL
    world.apply(registry.set_config(":.c:", {"compatibility_level": "FORWARD"}))
    assert registry.level(":.c:a") is Level.FORWARD
    assert registry.level("a") is Level.FULL
    world.apply(registry.set_config("a", {"compatibility_level": "NONE"}))
    assert registry.level("a") is Level.NONE
    world.apply(registry.delete_config("a"))
    assert registry.level("a") is Level.FULL


def test_what_is_not_there(world: World) -> None:
    registry = world.registry
    assert code_of(lambda: registry.version("a", "1")) == 40401
    world.register("a")
    assert code_of(lambda: registry.version("a", "2")) == 40402
    assert code_of(lambda: world.delete("b")) == 40401
    assert code_of(lambda: world.delete_version("a", "9")) == 40402
    assert code_of(lambda: world.delete_version("b", "1")) == 40401
    assert code_of(lambda: registry.delete_config("a")) == 40401
    assert code_of(lambda: registry.delete_mode("a")) == 40401
    judgement = judge(registry.question(SubjectName(".", "a"), Wanted(schema=LONG)))
    lookup = lambda: registry.lookup(  # noqa: E731
        SubjectName(".", "a"), Wanted(schema=LONG), judgement, normalize=False, deleted=False
    )
    assert code_of(lookup) == 40403


def test_deleting_is_soft_at_first(world: World) -> None:
    world.register("a")
    world.register("a", LONG)
    assert code_of(lambda: world.delete("a", permanent=True)) == 40405
    assert code_of(lambda: world.delete_version("a", "1", permanent=True)) == 40407
    assert world.delete_version("a", "1") == 1
    assert code_of(lambda: world.delete_version("a", "1")) == 40406
    assert world.delete_version("a", "1", permanent=True) == 1
    assert world.delete("a") == [2]
    assert code_of(lambda: world.delete("a")) == 40404
    assert world.delete("a", permanent=True) == [2]
    assert code_of(lambda: world.delete("a")) == 40401


def test_a_referenced_version_cannot_be_deleted(world: World) -> None:
    world.register("a", '{"type":"enum","name":"E","symbols":["X"]}')
    reference = (Reference("E", "a", 1),)
    world.register("b", '{"type":"array","items":"E"}', references=reference)
    assert code_of(lambda: world.delete_version("a", "1")) == 42206
    assert code_of(lambda: world.delete("a")) == 42206
    world.delete("b")
    assert world.delete("a") == [1]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("", {}),
        ("nonsense", {}),
        (INT, {"schema_type": "OTHER"}),
        (INT, {"references": (Reference("n", "missing", 1),)}),
    ],
)
def test_invalid_schemas(world: World, text: str, more: dict[str, Any]) -> None:
    assert code_of(lambda: world.register("a", text, **more)) == 42201


def test_a_schema_that_is_too_large(world: World) -> None:
    assert code_of(lambda: world.register("a", '"' + "x" * 2**20 + '"')) == 42209


@pytest.mark.parametrize("version", ["0", "-2", "x", "2147483648", ""])
def test_invalid_versions(world: World, version: str) -> None:
    world.register("a")
    assert code_of(lambda: world.registry.version("a", version)) == 42202


def test_invalid_levels_and_modes(world: World) -> None:
    bad_level = {"compatibility_level": "SOME"}
    assert code_of(lambda: world.registry.set_config(None, bad_level)) == 42203
    assert code_of(lambda: world.registry.set_mode(None, "SOME", force=False)) == 42204


def test_modes(world: World) -> None:
    world.register("a")
    for mode in ("READONLY", "READONLY_OVERRIDE", "FORWARD"):
        world.mode(None, mode)
        assert code_of(lambda: world.register("a", LONG)) == 42205
    world.mode(None, "READWRITE")
    assert code_of(lambda: world.mode(None, "IMPORT", force=False)) == 42205
    assert code_of(lambda: world.register("a", LONG, id=9, version=9)) == 42205
    world.mode("a", "IMPORT")
    assert world.register("a", STRING, id=9, version=9) == (9, 9)
    assert code_of(lambda: world.register("a", LONG, id=9, version=10)) == 42205
    fixed = World(mode_mutability=False)
    assert code_of(lambda: fixed.mode(None, "READONLY")) == 42205


def test_a_context_that_is_not_empty(world: World) -> None:
    world.register(":.c:a")
    assert code_of(lambda: world.registry.delete_context(".c")) == 42211
    world.delete(":.c:a")
    world.delete(":.c:a", permanent=True)
    world.apply(world.registry.delete_context(".c"))
    assert world.registry.subjects.contexts() == ["."]


def test_what_holds_for_a_key_can_be_written_again(world: World) -> None:
    world.register("a")
    world.register("a", LONG)
    world.delete("a")
    copy = Subjects()
    for entry in world.written:
        if not isinstance(entry.key, DeleteSubjectKey):
            copy.apply(entry)
    for entry in world.registry.current(DeleteSubjectKey(subject="a")):
        copy.apply(entry)
    assert copy.versions("a", deleted=True) == world.registry.subjects.versions("a", deleted=True)
    (gone,) = world.registry.current(SchemaKey(subject="b", version=1))
    assert gone.value is None


def test_store_errors_have_codes_of_their_own() -> None:
    found = [
        errors.store_failed(""), errors.store_timed_out(""), errors.forwarding_failed(""), errors.unknown_primary(),
    ]  # fmt: skip
    assert [each.code for each in found] == [50001, 50002, 50003, 50004]
    assert {each.status for each in found} == {500}
