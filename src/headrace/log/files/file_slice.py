"""Range of whole batches in a file. Reads return it instead of bytes."""

from typing import NamedTuple

from headrace.log.files.disk import File


class FileSlice(NamedTuple):
    """Bytes `position..position + length` of a segment's `.log` file, not yet read."""

    file: File
    position: int
    length: int

    def view(self) -> bytes | memoryview:
        """The bytes for a socket, see `File.view`. Only for what is not truncated any more: below the high watermark."""
        return self.file.view(self.position, self.length)

    def copy(self) -> bytes:
        """The bytes, read now; safe against a later truncation."""
        return self.file.read(self.position, self.length)
