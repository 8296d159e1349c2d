"""The seven compatibility levels: which earlier versions a new schema is compared with, and in which direction. Pure."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from headrace.schemas.formats.schema_format import ParsedSchema

STRICT: Final = "STRICT"
LENIENT: Final = "LENIENT"
POLICIES: Final = (STRICT, LENIENT)


class Level(Enum):
    """A compatibility level: whether new reads old, whether old reads new, and whether all versions count or the latest."""

    NONE = (False, False, False)
    BACKWARD = (True, False, False)
    BACKWARD_TRANSITIVE = (True, False, True)
    FORWARD = (False, True, False)
    FORWARD_TRANSITIVE = (False, True, True)
    FULL = (True, True, False)
    FULL_TRANSITIVE = (True, True, True)

    def __init__(self, new_reads_old: bool, old_reads_new: bool, is_transitive: bool) -> None:  # noqa: FBT001 - the rows above name them
        self.new_reads_old = new_reads_old
        self.old_reads_new = old_reads_new
        self.is_transitive = is_transitive


class Earlier(NamedTuple):
    """An earlier version, parsed when it is needed."""

    version: int
    schema_type: str
    text: str
    parse: Callable[[], ParsedSchema]


def messages(
    level: Level,
    new: ParsedSchema,
    new_type: str,
    earlier: Sequence[Earlier],
    *,
    policy: str = STRICT,
) -> list[str]:
    """Why the new schema breaks the level; empty if it does not. `earlier` in ascending order."""
    if level is Level.NONE or not earlier:
        return []
    compared = reversed(earlier) if level.is_transitive else earlier[-1:]
    for old in compared:
        if new_type != old.schema_type:
            return ["Incompatible because of different schema type"]
        found = _compare(level, new, old.parse(), is_lenient=policy == LENIENT)
        if found:
            return [
                *found,
                f"{{oldSchemaVersion: {old.version}}}",
                f"{{oldSchema: '{old.text}'}}",
            ]
    return []


def _compare(level: Level, new: ParsedSchema, old: ParsedSchema, *, is_lenient: bool) -> list[str]:
    found = []
    if level.new_reads_old:
        differences = new.can_read(old, is_lenient=is_lenient)
        found += [each.message(reader="new", writer="old") for each in differences]
    if level.old_reads_new:
        differences = old.can_read(new, is_lenient=is_lenient)
        found += [each.message(reader="old", writer="new") for each in differences]
    return list(dict.fromkeys(found))
