"""Finding versions and schemas, in the context that is meant and in others."""

import pytest

from headrace.registry.rules.lookup import LATEST, version_number
from tests.unit.registry.world import INT, LONG, World, code_of


@pytest.fixture
def world() -> World:
    world = World()
    world.register("a")
    world.register("a", LONG)
    world.register(":.c:b", LONG)
    return world


@pytest.mark.parametrize("version", ["0", "-2", "x", "2147483648", "", "+1", "\u0661"])
def test_invalid_versions(version: str) -> None:
    assert code_of(lambda: version_number(version)) == 42202


def test_versions(world: World) -> None:
    lookup = world.registry.lookup
    assert lookup.version("a", 1).schema.text == INT
    assert lookup.version("a", LATEST).number == 2
    assert lookup.version("b", 1).subject == ":.c:b"
    assert code_of(lambda: lookup.version("a", 3)) == 40402
    assert code_of(lambda: lookup.version("none", 1)) == 40401
    assert code_of(lambda: lookup.version(":.c:a", 1)) == 40401


def test_deleted_versions(world: World) -> None:
    lookup = world.registry.lookup
    world.delete_version("a", "2")
    assert lookup.version("a", LATEST).number == 1
    assert lookup.version("a", 2, deleted=True).version.is_deleted
    world.delete("a")
    assert code_of(lambda: lookup.version("a", LATEST, deleted=True)) == 40402


def test_ids(world: World) -> None:
    lookup = world.registry.lookup

    def context_of(schema_id: int, subject: str) -> str | None:
        found = lookup.by_id(schema_id, subject)
        return None if found is None else f"{found.context} {found.use.subject}"

    assert context_of(1, "") == ". a"
    assert context_of(1, ":.c:") == ".c :.c:b"
    assert context_of(1, "b") == ".c :.c:b"  # no such subject in the default context
    assert context_of(1, ":.c:other") is None
    assert context_of(9, "") is None


def test_prefixes(world: World) -> None:
    matching = world.registry.lookup.matching
    assert matching("") == ["a"]
    assert matching(":.c:") == [":.c:b"]
    assert matching(":*:") == [":.c:b", "a"]
    assert matching(":*:b") == [":.c:b"]


def test_looking_up_texts(world: World) -> None:
    assert world.find("a", INT) == 1
    assert world.find("a", '"string"') is None
    world.delete_version("a", "1")
    assert world.find("a", INT) is None
    assert world.find("a", INT, deleted=True) == 1
