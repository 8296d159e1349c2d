"""Changes of settings, modes and contexts, and what is refused."""

import pytest

from headrace.registry.state.metadata import Rule, RuleSet
from headrace.registry.state.scopes import GLOBAL_SCOPE
from tests.unit.registry.world import LONG, World, code_of


@pytest.fixture
def world() -> World:
    return World()


def test_what_is_not_named_stays_and_null_clears(world: World) -> None:
    world.configure("a", compatibility_level="full", alias="b")
    world.configure("a", normalize=True)
    world.configure("a", alias=None)
    config = world.registry.subjects.config("a")
    assert config is not None
    assert (config.compatibility_level, config.normalize, config.alias) == ("FULL", True, None)


def test_what_is_refused(world: World) -> None:
    settings = world.registry.settings
    assert code_of(lambda: world.configure(None, compatibility_level="SOME")) == 42203
    assert code_of(lambda: world.set_mode(None, "SOME")) == 42204
    assert code_of(lambda: world.set_mode("a", "FORWARD")) == 42204
    assert code_of(lambda: settings.delete_config("a")) == 40401
    assert code_of(lambda: settings.delete_mode("a")) == 40401
    rules = RuleSet(domain_rules=[Rule(name="r", type="CEL", mode="UPGRADE")])
    assert code_of(lambda: world.configure("a", default_rule_set=rules)) == 42210
    world.set_mode("a", "READONLY")
    assert code_of(lambda: world.configure("a", normalize=True)) == 42205
    world.set_mode(GLOBAL_SCOPE, "FORWARD")
    fixed = World(mode_mutability=False)
    assert code_of(lambda: fixed.set_mode(None, "READONLY")) == 42205


def test_importing_needs_an_empty_scope(world: World) -> None:
    world.register("a")
    world.register("b")
    assert code_of(lambda: world.set_mode("a", "IMPORT", force=False)) == 42205
    world.delete("a")
    world.set_mode("a", "IMPORT", force=False)
    assert not world.registry.subjects.versions("a", deleted=True)
    assert world.registry.subjects.versions("b")


def test_modes_of_a_context_are_forgotten_together(world: World) -> None:
    for scope in (":.c:", ":.c:a", ":.d:a"):
        world.set_mode(scope, "READONLY")
    world.apply(world.registry.settings.delete_mode(":.c:", recursive=True))
    assert world.registry.subjects.mode_scopes() == [":.d:a"]


def test_a_context_that_is_not_empty(world: World) -> None:
    world.register(":.c:a", LONG)
    assert code_of(lambda: world.registry.settings.delete_context(".c")) == 42211
    world.delete(":.c:a")
    world.delete(":.c:a", permanent=True)
    world.apply(world.registry.settings.delete_context(".c"))
    assert world.registry.subjects.contexts() == ["."]
