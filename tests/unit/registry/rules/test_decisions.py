"""What holds for a key can be written again, and store errors have codes of their own."""

from headrace.registry import errors
from headrace.registry.state.records import DeleteSubjectKey, SchemaKey
from headrace.registry.state.subjects import Subjects
from tests.unit.registry.world import LONG, World


def test_what_holds_for_a_key_can_be_written_again() -> None:
    world = World()
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
