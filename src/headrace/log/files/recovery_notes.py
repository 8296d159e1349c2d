"""`recovery.metadata`: facts for the recovery of one log that the checkpoints of its directory do not contain yet.

Owned by the log. `truncated_to` is written, durably, before a truncation: no offset in the checkpoints counts above it, because
they are rewritten only seconds later. It goes when they have been. `has_gaps` says that offsets are missing between batches
and nothing is lost: the log, or the one that it was copied from, has been compacted once.
"""

from dataclasses import dataclass
from typing import Final

from headrace.log.files.disk import Disk

RECOVERY_NOTES_FILE: Final = "recovery.metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryNotes:
    """The content of the file; a log without anything to note has none."""

    truncated_to: int | None = None
    has_gaps: bool = False

    def limit(self, offset: int) -> int:
        """A checkpointed offset, limited to where the log was truncated."""
        return offset if self.truncated_to is None else min(offset, self.truncated_to)


NO_NOTES: Final = RecoveryNotes()


def read_notes(disk: Disk, directory: str) -> RecoveryNotes:
    """The notes in a log's directory."""
    content = disk.read_bytes(f"{directory}/{RECOVERY_NOTES_FILE}")
    if content is None:
        return NO_NOTES
    try:
        lines = content.decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines)
        if fields["version"] == "0" and content.endswith(b"\n"):
            truncated_to = fields.get("truncated_to")
            return RecoveryNotes(
                truncated_to=None if truncated_to is None else int(truncated_to),
                has_gaps=fields["has_gaps"] == "true",
            )
    except (ValueError, KeyError):
        pass
    # Only notes without `truncated_to` are written without a sync, so this torn file has none.
    return RecoveryNotes(has_gaps=True)


def write_notes(disk: Disk, directory: str, notes: RecoveryNotes, *, durable: bool) -> None:
    """Put the notes into a log's directory, or take them away if they say nothing."""
    path = f"{directory}/{RECOVERY_NOTES_FILE}"
    if notes == NO_NOTES:
        disk.remove(path)
        return
    lines = ["version: 0", f"has_gaps: {str(notes.has_gaps).lower()}"]
    if notes.truncated_to is not None:
        lines.append(f"truncated_to: {notes.truncated_to}")
    disk.replace(path, "".join(f"{line}\n" for line in lines).encode(), durable=durable)
