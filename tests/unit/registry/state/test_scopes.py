"""Settings and modes in force: a subject's own, its context's, those for all."""

import pytest

from headrace.registry.compatibility import Level
from headrace.registry.state.scopes import GLOBAL_SCOPE
from tests.unit.registry.world import World


@pytest.fixture
def world() -> World:
    return World()


def test_levels_of_subject_context_and_all(world: World) -> None:
    scopes = world.registry.scopes
    world.configure(None, compatibility_level="FULL")
    assert scopes.level("a") is Level.FULL
    assert (
        scopes.level(":.c:a") is Level.BACKWARD
    )  # the default context's settings are not those of others
    world.configure(":.c:", compatibility_level="FORWARD")
    assert scopes.level(":.c:a") is Level.FORWARD
    world.configure("a", compatibility_level="NONE")
    assert scopes.level("a") is Level.NONE
    world.apply(world.registry.settings.delete_config("a"))
    assert scopes.level("a") is Level.FULL


def test_settings_of_the_global_context_apply_to_contexts_without_any(world: World) -> None:
    world.configure(GLOBAL_SCOPE, compatibility_level="NONE")
    scopes = world.registry.scopes
    assert (scopes.level("a"), scopes.level(":.c:a")) == (Level.NONE, Level.NONE)
    world.configure(":.c:", compatibility_level="FULL")
    assert (scopes.level("a"), scopes.level(":.c:a")) == (Level.NONE, Level.FULL)


def test_own_settings_inherit_what_they_leave_open(world: World) -> None:
    world.configure(None, compatibility_level="FULL", normalize=True)
    world.configure("a", alias="b")
    config = world.registry.scopes.config("a")
    assert (config.normalize, config.alias) == (True, "b")
    assert (
        config.compatibility_level == "BACKWARD"
    )  # a level is not inherited, as with Confluent's registry


def test_modes(world: World) -> None:
    scopes = world.registry.scopes
    world.set_mode(None, "READONLY")
    assert (scopes.mode("a"), scopes.mode(":.c:a")) == ("READONLY", "READWRITE")
    world.set_mode("a", "READWRITE")
    assert scopes.mode("a") == "READWRITE"
    world.set_mode(GLOBAL_SCOPE, "FORWARD")
    assert scopes.mode(":.c:a") == "FORWARD"
    assert scopes.own_mode(":.c:a") is None
