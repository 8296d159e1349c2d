"""A disk that counts which bytes are read through it; everything else goes to the disk underneath."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.log.files.disk import Disk, File


@dataclass(slots=True)
class CountingFile:
    """A file whose reads are entered in its disk's books."""

    file: File
    reads: list[tuple[str, int, int]]

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def modified_ms(self) -> int:
        return self.file.modified_ms

    def append(self, *pieces: bytes | bytearray | memoryview) -> None:
        self.file.append(*pieces)

    def read(self, position: int, length: int) -> bytes:
        content = self.file.read(position, length)
        self.reads.append((self.path, position, len(content)))
        return content

    def view(self, position: int, length: int) -> bytes | memoryview:
        content = self.file.view(position, length)
        self.reads.append((self.path, position, len(content)))
        return content

    def truncate(self, size: int) -> None:
        self.file.truncate(size)

    def syncer(self) -> Callable[[], None]:
        return self.file.syncer()

    def renamed(self, path: str) -> None:
        self.file.renamed(path)

    def close(self) -> None:
        self.file.close()


@dataclass(slots=True)
class CountingDisk:
    """`reads` holds (path, position, bytes) of every read and every view."""

    disk: Disk
    reads: list[tuple[str, int, int]] = field(default_factory=list)

    def open(self, path: str, size: int | None = None) -> CountingFile:
        return CountingFile(self.disk.open(path, size), self.reads)

    def create(self, path: str) -> CountingFile:
        return CountingFile(self.disk.create(path), self.reads)

    def read_bytes(self, path: str) -> bytes | None:
        content = self.disk.read_bytes(path)
        if content is not None:
            self.reads.append((path, 0, len(content)))
        return content

    def bytes_read(self, suffix: str) -> int:
        """Bytes read from files whose name ends so."""
        return sum(length for path, _, length in self.reads if path.endswith(suffix))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.disk, name)
