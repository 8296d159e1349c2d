"""Real files without waiting for the device, and a disk that dies before its n-th change of names."""

from collections.abc import Callable

from headrace.log.files.os_disk import OsDisk, OsFile


def _nothing() -> None:
    """Instead of a sync: what a killed process has written is there all the same."""


class UnsyncedFile(OsFile):
    """A file that is never synced."""

    __slots__ = ()

    def syncer(self) -> Callable[[], None]:
        return _nothing


class UnsyncedDisk(OsDisk):
    """Quick, where a test is about kills and not about power."""

    def open(self, path: str, size: int | None = None) -> UnsyncedFile:
        return UnsyncedFile(self, path, size)

    def create(self, path: str) -> UnsyncedFile:
        super().create(path)
        return UnsyncedFile(self, path, 0)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        super().replace(path, data, durable=False)

    def sync_directory(self, directory: str) -> None:
        pass


class Crashed(BaseException):
    """Nothing of ours may catch this."""


class CrashingDisk(UnsyncedDisk):
    """Lets `steps` creations, renames and removals happen, then raises at each, as a killed process would stop."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def _step(self) -> None:
        if self.steps <= 0:
            raise Crashed
        self.steps -= 1

    def create(self, path: str) -> UnsyncedFile:
        self._step()
        return super().create(path)

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._step()
        super().replace(path, data, durable=durable)

    def rename(self, source: str, target: str) -> None:
        self._step()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)
