"""Deletions: softly at first, and nothing that others refer to."""

import pytest

from headrace.registry.rules.submitted import SubmittedReference
from tests.unit.registry.world import LONG, World, code_of

ENUM = '{"type":"enum","name":"E","symbols":["X"]}'
REFERRER = '{"type":"array","items":"E"}'


@pytest.fixture
def world() -> World:
    return World()


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


def test_what_is_not_there(world: World) -> None:
    world.register("a")
    assert code_of(lambda: world.delete("b")) == 40401
    assert code_of(lambda: world.delete_version("a", "9")) == 40402
    assert code_of(lambda: world.delete_version("b", "1")) == 40401
    assert code_of(lambda: world.delete_version("a", "x")) == 42202


def test_a_referenced_version_cannot_be_deleted(world: World) -> None:
    world.register("a", ENUM)
    reference = (SubmittedReference("E", "a", 1),)
    world.register("b", REFERRER, references=reference)
    assert code_of(lambda: world.delete_version("a", "1")) == 42206
    assert code_of(lambda: world.delete("a")) == 42206
    world.delete("b")
    assert world.delete("a") == [1]
    # A soft deletion may be undone by registering again: the text must stay.
    assert code_of(lambda: world.delete("a", permanent=True)) == 42206
    world.delete("b", permanent=True)
    assert world.delete("a", permanent=True) == [1]


def test_versions_of_one_subject_may_refer_to_each_other(world: World) -> None:
    world.configure("a", compatibility_level="NONE")
    world.register("a", ENUM)
    world.register("a", REFERRER, references=(SubmittedReference("E", "a", 1),))
    assert code_of(lambda: world.delete_version("a", "1")) == 42206
    assert world.delete("a") == [1, 2]
    assert world.delete("a", permanent=True) == [1, 2]


def test_settings_go_with_the_last_version(world: World) -> None:
    world.register("a")
    world.configure("a", compatibility_level="FULL")
    world.delete("a")
    assert world.registry.subjects.config("a") is not None
    world.delete_version("a", "1", permanent=True)
    assert world.registry.subjects.config("a") is None


def test_a_mode_that_allows_no_changes(world: World) -> None:
    world.register("a")
    world.set_mode("a", "READONLY")
    assert code_of(lambda: world.delete("a")) == 42205
    assert code_of(lambda: world.delete_version("a", "1")) == 42205
