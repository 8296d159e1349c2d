"""Registered and deleted versions, as they are counted for metrics."""

from headrace.registry.state.schema_counts import SchemaCounts
from headrace.registry.state.subjects import Subjects
from tests.unit.registry.world import LONG, STRING, World


def test_versions_are_counted_as_their_records_are_read() -> None:
    world = World()
    world.configure(None, compatibility_level="NONE")
    world.register("a")
    world.register("a", LONG)
    world.register("a", STRING)
    world.register("j", '{"type":"object"}', schema_type="JSON")
    world.delete_version("a", "1")
    world.delete("a")  # the two that are left
    world.delete("a", permanent=True)  # counted when they were deleted softly
    counts, subjects = SchemaCounts(), Subjects()
    for entry in world.written:
        counts.note(entry, subjects)
        subjects.apply(entry)
    assert dict(counts.created) == {"AVRO": 3, "JSON": 1}
    assert dict(counts.deleted) == {"AVRO": 3}
