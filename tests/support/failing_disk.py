"""A disk in memory that refuses its n-th operation: a full disk, or one that fails."""

from collections.abc import Callable

from headrace.errors import DiskFailed
from headrace.log.files.disk import FileStat
from headrace.testing.memory_disk import MemoryDisk, MemoryFile


class FailingDisk(MemoryDisk):
    """`fail` arms it: after `operations` more, one is refused with `error`, or all from then on if it `lasts`.

    Every change counts as an operation, and so does every read if `reads` is set. `has_failed` tells whether it came to it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_failed = False
        self._left: int | None = None
        self._error: type[BaseException] = DiskFailed
        self._lasts = False
        self._reads = False

    def fail(
        self,
        operations: int,
        error: type[BaseException],
        *,
        lasts: bool = False,
        reads: bool = False,
    ) -> None:
        """Refuse the operation behind the next `operations`."""
        self.has_failed = False
        self._left, self._error, self._lasts, self._reads = operations, error, lasts, reads

    def work(self) -> None:
        """Refuse nothing more."""
        self._left = None

    def step(self, path: str) -> None:
        """Count an operation."""
        if self._left is None:
            return
        if self._left > 0:
            self._left -= 1
            return
        self.has_failed = True
        if not self._lasts:
            self._left = None
        raise self._error(f"{path}: refused")

    def step_reading(self, path: str) -> None:
        """Count a read."""
        if self._reads:
            self.step(path)

    def open(self, path: str, size: int | None = None) -> "FailingFile":
        return FailingFile(self, path, self._content(path))

    def create(self, path: str) -> "FailingFile":
        self.step(path)
        super().create(path)
        return FailingFile(self, path, self._content(path))

    def list_files(self, directory: str) -> list[FileStat]:
        self.step_reading(directory)
        return super().list_files(directory)

    def read_bytes(self, path: str) -> bytes | None:
        self.step_reading(path)
        return super().read_bytes(path)

    def rename(self, source: str, target: str) -> None:
        self.step(source)
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.step(path)
        super().remove(path)

    def sync_directory(self, directory: str) -> None:
        self.step(directory)
        super().sync_directory(directory)


class FailingFile(MemoryFile):
    """A file of a `FailingDisk`."""

    __slots__ = ("_failing",)

    def __init__(self, disk: FailingDisk, path: str, content: object) -> None:
        super().__init__(disk, path, content)  # type: ignore[arg-type]
        self._failing = disk

    def append(self, *pieces: bytes | bytearray | memoryview) -> None:
        self._failing.step(self.path)
        super().append(*pieces)

    def read(self, position: int, length: int) -> bytes:
        self._failing.step_reading(self.path)
        return super().read(position, length)

    def truncate(self, size: int) -> None:
        self._failing.step(self.path)
        super().truncate(size)

    def syncer(self) -> Callable[[], None]:
        sync = super().syncer()

        def failing() -> None:
            self._failing.step(self.path)
            sync()

        return failing
