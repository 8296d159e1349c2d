"""Times and names that no sane client sends."""

from headrace.coordinator.partitioning import java_hash
from headrace.wire.error_code import ErrorCode
from tests.unit.coordinator.group.group_story import Story


def test_a_commit_that_never_expires_fits_its_record() -> None:
    story = Story()
    assert story.commit(7, retention_ms=2**63 - 1) == ErrorCode.NONE
    story.fail_over()
    assert story.position(0).committed_offset == 7


def test_a_long_key_is_hashed_and_not_kept() -> None:
    long_key = "x" * 30_000
    expected = 0
    for _ in long_key:
        expected = (expected * 31 + ord("x")) & 0xFFFF_FFFF
    assert java_hash(long_key) & 0xFFFF_FFFF == expected
