"""A run of whole batches in a file: what a read yields instead of bytes."""

from typing import NamedTuple

from headrace.log.disk import File


class FileSlice(NamedTuple):
    """Bytes `position..position + length` of a segment's `.log` file, not yet read."""

    file: File
    position: int
    length: int

    def view(self) -> memoryview:
        """The bytes without a copy. Only for what can no longer be truncated: below the high watermark."""
        return self.file.view(self.position, self.length)

    def copy(self) -> bytes:
        """The bytes, read now; safe against a later truncation."""
        return self.file.read(self.position, self.length)
