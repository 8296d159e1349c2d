"""A disk in memory that forgets what was not synced: `headrace.log.files.disk.Disk` for simulations and tests.

Two truths are kept, what the running program sees and what would survive a loss of power; `crash` makes the second one
the first. Rules, those of a journalling file system and no kinder:

- bytes are durable once a syncer of their file has run; of the bytes behind, any prefix may survive, with a hole of
  wrong bytes in it; a cut (`truncate`) may be undone as long as it was not synced;
- a name (creation, rename, removal) is durable once its directory was synced; of the changes behind, in their order,
  any prefix may survive;
- a failed sync loses the bytes for good: a second try says that all is well and it is not.

A killed process loses nothing: open the log again on the same disk and leave `crash` alone. Chance comes only from the
`random.Random` that `crash` is given, so a seed repeats a run. One owner, no locks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from headrace.errors import DiskFailed, DiskFull
from headrace.log.files.disk import DiskUsage, FileStat

_UNLIMITED_BYTES: Final = 2**50  # what a disk without a capacity says it has


class _Content:
    """A file's bytes, whatever its name: as they are, and as they would be after a crash."""

    __slots__ = ("current", "cut", "kept", "lost", "modified_ms")

    def __init__(self, now_ms: int) -> None:
        self.current = bytearray()
        self.kept = 0  # so many bytes of `current` are durable
        self.cut = (
            b""  # durable bytes behind those, until the truncation that took them away is synced
        )
        self.lost = False  # a sync failed: nothing becomes durable any more
        self.modified_ms = now_ms

    def truncate(self, size: int) -> None:
        if size < self.kept:
            self.cut = bytes(self.current[size : self.kept]) + self.cut
            self.kept = size
        del self.current[size:]

    def sync(self, size: int) -> None:
        if not self.lost:
            self.kept = max(self.kept, min(size, len(self.current)))
            self.cut = b""

    def crash(self, chance: Random) -> None:
        if self.cut and chance.random() < 0.5:
            self.current[self.kept :] = self.cut
        else:
            del self.current[chance.randint(self.kept, len(self.current)) :]
            self._tear(chance)
        self.kept, self.cut, self.lost = len(self.current), b"", False

    def _tear(self, chance: Random) -> None:
        """The size of a file may reach the disk before the bytes do."""
        if len(self.current) > self.kept and chance.random() < 0.5:
            start = chance.randrange(self.kept, len(self.current))
            end = chance.randint(start + 1, len(self.current))
            self.current[start:end] = chance.choice((b"\x00", b"\xa5")) * (end - start)


class _Directory:
    """Names of files and directories: as they are, and the changes that a crash may take back."""

    __slots__ = ("_changes", "_durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, _Content | _Directory] = {}
        self._durable: dict[str, _Content | _Directory] = {}
        self._changes: list[dict[str, _Content | _Directory | None]] = []

    def change(self, change: "dict[str, _Content | _Directory | None]") -> None:
        """Set names, or remove those given as None: all of them or none."""
        self._changes.append(change)
        _apply(change, self.names)

    def sync(self) -> None:
        self._durable = dict(self.names)
        self._changes.clear()

    def crash(self, chance: Random) -> None:
        for change in self._changes[: chance.randint(0, len(self._changes))]:
            _apply(change, self._durable)
        self.names = self._durable
        self.sync()
        for _, node in sorted(self.names.items()):
            node.crash(chance)


def _apply(
    change: "dict[str, _Content | _Directory | None]", names: "dict[str, _Content | _Directory]"
) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class MemoryFile:
    """A file of a `MemoryDisk`; dead after the disk has crashed."""

    __slots__ = ("_content", "_disk", "_life", "_path")

    def __init__(self, disk: "MemoryDisk", path: str, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._life = disk.crashes

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return len(self._content.current)

    @property
    def modified_ms(self) -> int:
        return self._touch().modified_ms

    def append(self, *pieces: bytes | bytearray | memoryview) -> None:
        content = self._touch()
        data = b"".join(pieces)
        self._disk.require_space(self._path, len(data))
        self._disk.changes += 1
        content.current += data
        content.modified_ms = self._disk.now_ms

    def read(self, position: int, length: int) -> bytes:
        content = self._touch()
        if not self._disk.is_observed:
            for path, bad in self._disk.bad_bytes:
                if path == self._path and position <= bad < position + length:
                    raise DiskFailed(f"{path}: byte {bad} cannot be read")
        return bytes(content.current[position : position + length])

    def view(self, position: int, length: int) -> bytes:
        return self.read(position, length)

    def truncate(self, size: int) -> None:
        content = self._touch()
        self._disk.changes += 1
        content.truncate(size)
        content.modified_ms = self._disk.now_ms

    def syncer(self) -> Callable[[], None]:
        content, size = self._touch(), self.size

        def sync() -> None:
            self._disk.syncs += 1
            self._disk.require_sound(self._path)
            if self._disk.fail_syncs:
                content.lost = True
                raise DiskFailed(f"{self._path}: the sync failed")
            content.sync(size)

        return sync

    def renamed(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        self._disk.opened.pop(self, None)

    def _touch(self) -> _Content:
        self._disk.require_sound(self._path)
        assert self._life == self._disk.crashes, f"{self._path} was opened before the crash"
        if not self._disk.is_observed:
            self._disk.opened[self] = None
        return self._content


class MemoryDisk:
    """A disk in memory that can lose power, fill up and fail. The public fields may be set at any time.

    `capacity_bytes`: more than that is DiskFull. `fail_syncs`: every sync fails. `now_ms`: the time of modification
    that files get, or `clock`, which tells it. `bad_bytes`: (path, position) of bytes that cannot be read.
    `failing`: directories of the first level in which everything fails. `syncs`, `crashes` and `changes` count.
    """

    def __init__(self, *, capacity_bytes: int | None = None) -> None:
        self.capacity_bytes = capacity_bytes
        self.fail_syncs = False
        self.clock: Callable[[], int] = lambda: 0
        self.bad_bytes: set[tuple[str, int]] = set()
        self.failing: set[str] = set()
        self.is_observed = False
        self.syncs = 0
        self.crashes = 0
        self.changes = 0  # of files and names
        self.opened: dict[MemoryFile, None] = {}  # files that were used and not closed since
        self._root = _Directory()
        self._locks: set[str] = set()

    def crash(self, chance: Random) -> None:
        """Lose power: what was not synced is lost, or partly lost. Files opened before are dead."""
        self.crashes += 1
        self.owner_ended()
        self._root.crash(chance)

    @property
    def now_ms(self) -> int:
        """The time of modification that a file gets now."""
        return self.clock()

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self.clock = lambda: now_ms

    def owner_ended(self) -> None:
        """The process that used the disk has ended: its locks and files are free."""
        self._locks.clear()
        self.opened.clear()

    def open_without_name(self) -> str | None:
        """A file that is open although no name leads to it any more."""
        contents = {id(content) for content in _contents(self._root)}
        return next((file.path for file in self.opened if id(file._content) not in contents), None)

    @property
    def used_bytes(self) -> int:
        """Bytes in all files."""
        return sum(len(content.current) for content in _contents(self._root))

    def require_space(self, path: str, length: int) -> None:
        """DiskFull if `length` more bytes do not fit."""
        if self.capacity_bytes is not None and self.used_bytes + length > self.capacity_bytes:
            raise DiskFull(f"{path}: no space left on the disk in memory")

    @contextmanager
    def observed(self) -> Iterator[None]:
        """What reads meanwhile is no program but a test: nothing fails, and no file counts as open."""
        before, self.is_observed = self.is_observed, True
        try:
            yield
        finally:
            self.is_observed = before

    def file_sizes(self, directory: str) -> dict[str, int]:
        """The files below a directory by path; nothing fails for whoever asks."""
        found: dict[str, int] = {}
        node = self._root.names.get(_steps(directory)[0])
        if isinstance(node, _Directory):
            _collect_sizes(node, directory, found)
        return found

    def require_sound(self, path: str) -> None:
        """DiskFailed for whatever lies in a failing directory."""
        if self.failing and not self.is_observed and "/" + _steps(path)[0] in self.failing:
            raise DiskFailed(f"{path}: input/output error")

    # ---- headrace.log.files.disk.Disk

    def open(self, path: str, size: int | None = None) -> MemoryFile:
        return MemoryFile(self, path, self._content(path))

    def create(self, path: str) -> MemoryFile:
        content = _Content(self.now_ms)
        self.changes += 1
        directory, name = self._parent(path)
        directory.change({name: content})
        return MemoryFile(self, path, content)

    def list_files(self, directory: str) -> list[FileStat]:
        return [
            FileStat(name, len(node.current), node.modified_ms)
            for name, node in self._directory(directory).names.items()
            if isinstance(node, _Content)
        ]

    def list_directories(self, directory: str) -> list[str]:
        names = self._directory(directory).names
        return sorted(name for name, node in names.items() if isinstance(node, _Directory))

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def read_bytes(self, path: str) -> bytes | None:
        return bytes(self._content(path).current) if self.exists(path) else None

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        aside = self.create(path + ".tmp")
        try:
            aside.append(data)
            if durable:
                aside.syncer()()
        finally:
            aside.close()
        self.rename(aside.path, path)
        if durable:
            self.sync_directory(path.rpartition("/")[0])

    def rename(self, source: str, target: str) -> None:
        node = self._find(source)
        if node is None:
            raise DiskFailed(f"{source}: no such file")
        self.changes += 1
        old_parent, old_name = self._parent(source)
        new_parent, new_name = self._parent(target)
        if old_parent is new_parent:
            old_parent.change({old_name: None, new_name: node})
        else:
            new_parent.change({new_name: node})
            old_parent.change({old_name: None})

    def set_modified(self, path: str, modified_ms: int) -> None:
        self._content(path).modified_ms = modified_ms

    def remove(self, path: str) -> None:
        if self.exists(path):
            self.changes += 1
            directory, name = self._parent(path)
            directory.change({name: None})

    def remove_tree(self, directory: str) -> None:
        self._directory(directory)
        self.remove(directory)

    def make_directory(self, directory: str) -> None:
        at = self._root
        for name in _steps(directory):
            node = at.names.get(name)
            if node is None:
                node = _Directory()
                at.change({name: node})
            if not isinstance(node, _Directory):
                raise DiskFailed(f"{directory}: {name} is a file")
            at = node

    def sync_directory(self, directory: str) -> None:
        if self.fail_syncs:
            raise DiskFailed(f"{directory}: the sync failed")
        self.syncs += 1
        self._directory(directory).sync()

    def volume_syncer(self, directory: str) -> Callable[[], None]:
        def sync() -> None:
            self.syncs += 1
            self.require_sound(directory)
            if self.fail_syncs:
                raise DiskFailed(f"{directory}: the sync failed")
            self._root.sync()
            _sync_all(self._directory("/" + _steps(directory)[0]))

        self._directory(directory)
        return sync

    def usage(self, directory: str) -> DiskUsage:
        self._directory(directory)
        total_bytes = _UNLIMITED_BYTES if self.capacity_bytes is None else self.capacity_bytes
        return DiskUsage(total_bytes, total_bytes - self.used_bytes)

    def lock(self, path: str) -> Callable[[], None]:
        if path in self._locks:
            raise DiskFailed(f"{path}: another broker uses this directory")
        if not self.exists(path):
            self.create(path)
        self._locks.add(path)
        return lambda: self._locks.discard(path)

    # ---- the tree

    def _find(self, path: str) -> _Content | _Directory | None:
        self.require_sound(path)
        at: _Content | _Directory | None = self._root
        for name in _steps(path):
            at = at.names.get(name) if isinstance(at, _Directory) else None
        return at

    def _directory(self, path: str) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise DiskFailed(f"{path}: no such directory")
        return node

    def _content(self, path: str) -> _Content:
        node = self._find(path)
        if not isinstance(node, _Content):
            raise DiskFailed(f"{path}: no such file")
        return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        self.require_sound(path)
        directory, _, name = path.rstrip("/").rpartition("/")
        return self._directory(directory), name


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _contents(directory: _Directory) -> Iterator[_Content]:
    for node in directory.names.values():
        if isinstance(node, _Directory):
            yield from _contents(node)
        else:
            yield node


def _sync_all(directory: _Directory) -> None:
    directory.sync()
    for node in directory.names.values():
        if isinstance(node, _Directory):
            _sync_all(node)
        else:
            node.sync(len(node.current))


def _collect_sizes(directory: _Directory, path: str, found: dict[str, int]) -> None:
    for name, node in sorted(directory.names.items()):
        if isinstance(node, _Directory):
            _collect_sizes(node, f"{path}/{name}", found)
        else:
            found[f"{path}/{name}"] = len(node.current)
