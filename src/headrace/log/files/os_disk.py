"""The operating system's files, the only module of `log/` that opens them.

Writes go straight to the page cache by file descriptor: a user-space buffer would lose acknowledged bytes at a kill.
Python never touches a mapped page, because a page that the disk cannot read is a bus error there (decision 0008).
"""

import errno
import fcntl
import logging
import mmap
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from headrace.errors import DiskFailed, DiskFull
from headrace.log.files.disk import DiskUsage, FileStat
from headrace.log.files.reserved_space import RESERVE_FROM_BYTES, reserve

_logger = logging.getLogger(__name__)

# Up to this length a copy out of the page cache costs no more than a mapped view.
_COPIED_BYTES: Final = 64 * 1024
_PAGE_BYTES: Final = mmap.PAGESIZE
# Reads a range of a mapping into the page tables (Linux 5.14), and fails where a touch would be a bus error.
_MADV_POPULATE_READ: Final = 22
# A mapping's pages that were read count as this process's memory. After so much they are let go; the page cache has them.
_MOST_MAPPED_BYTES: Final = 32 * 1024 * 1024
_MOST_PIECES: Final = os.sysconf("SC_IOV_MAX")  # that one system call writes
_LACKING: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE))
_SECTOR_BYTES: Final = 512  # what a disk writes atomically


@contextmanager
def _failing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error


def disk_error(path: str, error: OSError) -> DiskFailed:
    """An OSError as DiskFailed or DiskFull.

    Without a free file descriptor nothing is wrong with the disk either: what was refused can be tried again.
    """
    kind = DiskFull if error.errno in _LACKING else DiskFailed
    return kind(f"{path}: {error.strerror or error}")


class OsFile:
    """A file of the operating system; its descriptor is borrowed from the disk's bounded set."""

    __slots__ = (
        "_close_error",
        "_disk",
        "_fd",
        "_map",
        "_path",
        "_reserved",
        "_size",
        "_viewed_bytes",
    )

    def __init__(self, disk: "OsDisk", path: str, size: int | None) -> None:
        self._disk = disk
        self._path = path
        self._size = -1 if size is None else size
        self._fd: int | None = None
        self._map: memoryview | None = None
        self._reserved = RESERVE_FROM_BYTES  # below this size no space is reserved
        self._viewed_bytes = 0  # mapped bytes that were read since pages were released
        self._close_error: str | None = None

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        if self._size < 0:
            with _failing(self._path):
                self._size = os.fstat(self.fileno()).st_size
        return self._size

    @property
    def modified_ms(self) -> int:
        with _failing(self._path):
            return os.stat(self._path).st_mtime_ns // 1_000_000

    def fileno(self) -> int:
        """The open descriptor, for `sendfile`; valid until the disk needs it for another file."""
        if self._fd is None:
            self._fd = self._disk.lend_descriptor(self)
        return self._fd

    def append(self, *pieces: bytes | bytearray | memoryview) -> None:
        size = self.size
        length = sum(map(len, pieces))
        if len(pieces) > _MOST_PIECES:
            pieces = (b"".join(pieces),)
        try:
            if size + length > self._reserved:
                self._reserved = reserve(self.fileno(), size)
            written = os.pwritev(self.fileno(), pieces, size)
            if written != length:
                self._append_rest(b"".join(pieces), written)
        except OSError as error:
            self._forget_torn_write()
            raise disk_error(self._path, error) from error
        self._size = size + length

    def _append_rest(self, data: bytes, written: int) -> None:
        while written < len(data):
            written += os.pwrite(self.fileno(), data[written:], self._size + written)

    def _forget_torn_write(self) -> None:
        if self._size >= 0 and self._fd is not None:
            try:
                os.ftruncate(self._fd, self._size)
            except OSError as error:
                raise disk_error(self._path, error) from error

    def read(self, position: int, length: int) -> bytes:
        with _failing(self._path):
            content = os.pread(self.fileno(), length, position)
        if len(content) < length and len(content) < self.size - position:
            content += self._read_rest(position + len(content), length - len(content))
        return content

    def _read_rest(self, position: int, length: int) -> bytes:
        pieces: list[bytes] = []
        end = min(position + length, self.size)
        while position < end:
            with _failing(self._path):
                piece = os.pread(self.fileno(), end - position, position)
            if not piece:
                raise DiskFailed(
                    f"{self._path}: ends at {position}, {self.size} bytes were written"
                )
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)

    def view(self, position: int, length: int) -> bytes | memoryview:
        end = min(position + length, self.size)
        if end - position <= _COPIED_BYTES or not self._disk.can_populate:
            return self.read(position, max(0, end - position))
        if self._map is None or end > len(self._map):
            with _failing(self._path):
                mapping = mmap.mmap(self.fileno(), self.size, prot=mmap.PROT_READ)
            self._map = memoryview(mapping)
            self._viewed_bytes = 0
        self._viewed_bytes += end - position
        if self._viewed_bytes > _MOST_MAPPED_BYTES:
            self._let_pages_go(self._map)
        if not self._populate(self._map, position, end):
            return self.read(position, end - position)
        return self._map[position:end]

    def _populate(self, view: memoryview, position: int, end: int) -> bool:
        """Have the kernel map the pages of a range. Returns whether all of them could be read."""
        mapping = view.obj
        assert isinstance(mapping, mmap.mmap)
        start = position - position % _PAGE_BYTES
        try:
            mapping.madvise(_MADV_POPULATE_READ, start, end - start)
        except OSError as error:
            # Of a page that cannot be read, EFAULT tells no more than that; the read that follows says why.
            self._disk.can_populate = error.errno != errno.EINVAL
            return False
        return True

    def _let_pages_go(self, view: memoryview) -> None:
        self._viewed_bytes = 0
        mapping = view.obj
        assert isinstance(mapping, mmap.mmap)
        mapping.madvise(mmap.MADV_DONTNEED)  # whoever still holds a view gets them again

    def truncate(self, size: int) -> None:
        if size != self.size:
            self._map = None  # its pages past the new end are gone
        elif self._reserved == RESERVE_FROM_BYTES:
            return
        with _failing(self._path):
            os.ftruncate(self.fileno(), size)
        self._size = size
        self._reserved = RESERVE_FROM_BYTES

    def syncer(self) -> Callable[[], None]:
        path = self._path
        if self._close_error is not None:
            # The kernel tells of a lost write once: the sync of a descriptor opened later would succeed.
            raise DiskFailed(f"{path}: an earlier close failed: {self._close_error}")
        with _failing(path):
            descriptor = os.dup(
                self.fileno()
            )  # of its own: ours may be lent to another file meanwhile
        return _Syncer(path, descriptor)

    def renamed(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        self._disk.take_back_descriptor(self)

    def give_back_room(self) -> None:
        """For the disk: what was reserved and not used is free again; on a disk that fails it stays taken."""
        if self._reserved != RESERVE_FROM_BYTES and self._fd is not None:
            with suppress(DiskFailed):
                self.truncate(self.size)

    def close_failed(self, error: OSError) -> None:
        """For the disk: what was written may be lost. Reads go on; no later sync says that all is well."""
        self._close_error = error.strerror or str(error)
        _logger.error("%s: closing it failed: %s", self._path, self._close_error)

    def drop_descriptor(self) -> int | None:
        """For the disk: forget descriptor and mapping. Views handed out keep their pages."""
        descriptor, self._fd, self._map = self._fd, None, None
        return descriptor


class _Syncer:
    """Syncs a file once, by a descriptor of its own, which it closes in any case."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __call__(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        try:
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            # Never DiskFull, whatever it says: what was written may be lost, and room does not bring it back.
            raise DiskFailed(f"{self._path}: {error.strerror}") from error

    def __del__(self) -> None:
        if self._descriptor >= 0:  # the plan that it belongs to was not carried out
            _close(self._descriptor)


class OsDisk:
    """The operating system's files, with a bound on how many are open at once.

    A log of thousands of sealed segments needs few of them open; the one opened longest ago makes room. Several threads may
    use it as long as no room is needed: recovery closes what it has read.
    """

    def __init__(self, max_open_files: int = 4096) -> None:
        self._max_open_files = max_open_files
        self.can_populate = sys.platform == "linux"  # until the kernel refuses
        self._open: dict[OsFile, None] = {}

    def lend_descriptor(self, file: OsFile) -> int:
        """Open `file`, closing the one opened longest ago if there are too many."""
        if len(self._open) >= self._max_open_files:
            self.take_back_descriptor(next(iter(self._open)))
        with _failing(file.path):
            descriptor = os.open(file.path, os.O_RDWR | os.O_CLOEXEC)
        self._open[file] = None
        return descriptor

    def take_back_descriptor(self, file: OsFile) -> None:
        """Close `file`'s descriptor if it has one."""
        file.give_back_room()
        descriptor = file.drop_descriptor()
        if descriptor is not None:
            self._open.pop(file, None)
            try:
                os.close(descriptor)
            except OSError as error:
                file.close_failed(error)

    def open(self, path: str, size: int | None = None) -> OsFile:
        return OsFile(self, path, size)

    def create(self, path: str) -> OsFile:
        with _failing(path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            os.close(os.open(path, flags, 0o644))
        return OsFile(self, path, 0)

    def list_files(self, directory: str) -> list[FileStat]:
        with _failing(directory), os.scandir(directory) as entries:
            return [
                FileStat(entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000)
                for entry in entries
                if entry.is_file() and (stat := entry.stat())
            ]

    def list_directories(self, directory: str) -> list[str]:
        with _failing(directory), os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def read_bytes(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_error(path, error) from error

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        if not durable and _overwritten(path, data):
            return
        aside = path + ".tmp"
        with _failing(path):
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                written = os.write(descriptor, data)
                if written != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(aside, path)
        if durable:
            self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        with _failing(source):
            os.replace(source, target)

    def set_modified(self, path: str, modified_ms: int) -> None:
        with _failing(path):
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def remove(self, path: str) -> None:
        with _failing(path):
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass

    def remove_tree(self, directory: str) -> None:
        with _failing(directory):
            shutil.rmtree(directory)

    def make_directory(self, directory: str) -> None:
        with _failing(directory):
            os.makedirs(directory, exist_ok=True)

    def sync_directory(self, directory: str) -> None:
        with _failing(directory):
            descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def volume_syncer(self, directory: str) -> Callable[[], None] | None:
        import ctypes  # slow to import, and needed once at most

        library = ctypes.CDLL(None, use_errno=True)
        if not hasattr(library, "syncfs"):  # Linux has it
            return None
        with _failing(directory):
            descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)

        def sync() -> None:
            try:
                if library.syncfs(descriptor):
                    raise DiskFailed(f"{directory}: {os.strerror(ctypes.get_errno())}")
            finally:
                _close(descriptor)

        return sync

    def usage(self, directory: str) -> DiskUsage:
        with _failing(directory):
            volume = os.statvfs(directory)
        return DiskUsage(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)

    def lock(self, path: str) -> Callable[[], None]:
        with _failing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            _close(descriptor)
            raise DiskFailed(f"{path}: another broker uses this directory") from error
        return partial(_close, descriptor)


def _close(descriptor: int) -> None:
    """Close a descriptor through which nothing was written; the kernel releases it even if that fails."""
    with suppress(OSError):
        os.close(descriptor)


def _overwritten(path: str, data: bytes) -> bool:
    """Whether a small file that does not become shorter could be written over in place, by one write.

    A rename over a file makes ext4 write out the new one: a millisecond for each partition that a broker is to lead.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        try:
            if os.fstat(descriptor).st_size > len(data) or len(data) > _SECTOR_BYTES:
                return False
            return os.pwrite(descriptor, data, 0) == len(data)
        finally:
            os.close(descriptor)
    except OSError:
        # The other way of writing will fail for the same reason and raise it.
        return False
