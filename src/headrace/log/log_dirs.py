"""All logs of one broker, over its log directories. A directory that fails goes offline; the others live on.

Owns: which log lies in which directory, the directories' checkpoints, the clean-shutdown marker and the lock file.
One broken partition does not keep the others from opening: it is listed in `broken`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from headrace.errors import NO_LOG_DIRECTORY, CorruptBatch, DiskFailed, DiskFull
from headrace.ids import TopicPartition
from headrace.log.clean_run import CLEAN_SHUTDOWN_FILE, UNKNOWN_RUN, CleanRun, unopened_in
from headrace.log.closing import close_logs
from headrace.log.files.checkpoint import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    SEEN_EPOCH_FILE,
    encode_offsets,
    largest_offsets,
    read_offsets,
    write_topic_id,
)
from headrace.log.files.disk import Disk, DiskUsage
from headrace.log.log_config import LogConfig
from headrace.log.opening import FoundLog, NewLogSync, make_durable_directory, some_of, topic_id_of
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import Checkpointed, open_log

_logger = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"
FUTURE_SUFFIX: Final = "-future"
MAX_NAME: Final = 255

OpenAll = Callable[
    [Callable[[FoundLog], PartitionLog | str], Iterable[FoundLog]], Iterable[PartitionLog | str]
]


@dataclass(slots=True)
class LogDir:
    """One directory with its logs."""

    path: str
    release: Callable[[], None]
    logs: dict[TopicPartition, PartitionLog] = field(default_factory=dict)
    futures: dict[TopicPartition, PartitionLog] = field(
        default_factory=dict
    )  # copies of logs that are being moved here
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    # The newest leader epoch that each replica was told of, whether or not its log has records of it.
    seen_epochs: dict[TopicPartition, int] = field(default_factory=dict)
    new_logs: dict[TopicPartition, PartitionLog] = field(default_factory=dict)
    unopened: dict[TopicPartition, FoundLog] = field(default_factory=dict)  # each is in `broken`
    # The largest offset that the checkpoint files say of a partition, whichever log had its name then.
    checkpointed: dict[TopicPartition, int] = field(default_factory=dict)
    # Copies whose high watermark and leader epoch the checkpoint files tell → that leader epoch.
    noted_copies: dict[PartitionLog, int] = field(default_factory=dict)

    def holds(self, log: PartitionLog) -> bool:
        """Whether this very log is here, or on its way here."""
        where = log.topic_partition
        return log in (self.logs.get(where), self.futures.get(where))


class DirectoryCheckpoints(NamedTuple):
    """The checkpoint files of one directory, as its logs are now."""

    directory: LogDir
    files: list[tuple[str, bytes]]  # path, content
    offsets: dict[TopicPartition, int]  # the largest in them
    truncated: list[tuple[PartitionLog, int]]  # logs whose truncation the files tell of
    starts: list[tuple[PartitionLog, int, int]]  # logs whose start has moved: to where, truncations
    copies: dict[PartitionLog, int]  # logs on their way here → newest leader epoch known


class LogDirs:
    """The log directories of one broker, with the logs in them."""

    def __init__(
        self,
        disk: Disk,
        paths: list[str],
        *,
        config_for: Callable[[str], LogConfig],
        new_id: Callable[[], UUID],
        open_all: OpenAll = map,
    ) -> None:
        """`open_all` may open several logs at a time, in threads, if the disk allows it."""
        self._open_all = open_all
        self.disk = disk
        self._paths = paths
        self._config_for = config_for
        self._new_id = new_id
        self._online: dict[str, LogDir] = {}
        self.offline: dict[str, str] = {}  # path → why
        self.broken: dict[TopicPartition, str] = {}
        # → the directory that a log shall move to, or be created in
        self.wanted: dict[TopicPartition, str] = {}
        self.leftovers: list[str] = []  # of deleted logs: found at the start, to be removed
        self._previous: set[CleanRun] = set()

    # ---- opening and closing

    def open(
        self,
        now_ms: int,
        on_progress: Callable[[str, int, int], None] = lambda path, done, of: None,
    ) -> None:
        """Lock the directories and open every log in them. DiskFailed only if no directory can be used.

        `on_progress` hears of each log: its directory, how many are open there and how many there are.
        """
        for path in self._paths:
            try:
                make_durable_directory(self.disk, path)
                directory = LogDir(path, self.disk.lock(f"{path}/{LOCK_FILE}"))
                self._online[path] = directory
                opened = self._open_logs(directory, self._find_logs(directory), now_ms)
                for done, of in opened:
                    on_progress(path, done, of)
            except DiskFailed as error:
                self.take_offline(path, str(error))
        if not self._online:
            raise DiskFailed(NO_LOG_DIRECTORY + "; ".join(self.offline.values()))

    def _find_logs(self, directory: LogDir) -> list[FoundLog]:
        """Read the checkpoints and list the logs. Leftovers of deletions and moves are removed."""
        path = directory.path
        marker = self.disk.read_bytes(f"{path}/{CLEAN_SHUTDOWN_FILE}")
        clean = marker is not None
        unopened = unopened_in(marker)
        self._previous.add(CleanRun.decode(marker))
        if clean:
            # Gone for good before anything is written: only a stop that completed may leave it behind.
            self.disk.remove(f"{path}/{CLEAN_SHUTDOWN_FILE}")
            self.disk.sync_directory(path)
        recovery_points = self._read_offsets(path, RECOVERY_POINT_FILE)
        log_starts = self._read_offsets(path, LOG_START_FILE)
        directory.high_watermarks = self._read_offsets(path, HIGH_WATERMARK_FILE)
        directory.seen_epochs = self._read_offsets(path, SEEN_EPOCH_FILE)
        cleaned_to = self._read_offsets(path, CLEANER_FILE)
        directory.checkpointed = _largest(directory, recovery_points, log_starts, cleaned_to)
        found: list[FoundLog] = []
        for name in self.disk.list_directories(path):
            if name.endswith("-delete"):
                self.leftovers.append(f"{path}/{name}")
                continue
            if name.endswith(FUTURE_SUFFIX):
                self._note_unfinished_move(path, name)
                continue
            topic_partition = parse_directory_name(name)
            if topic_partition is None:
                continue
            checkpointed = Checkpointed(
                clean=clean and name not in unopened,
                recovery_point=recovery_points.get(topic_partition, 0),
                log_start_offset=log_starts.get(topic_partition, 0),
                cleaned_to=cleaned_to.get(topic_partition),
            )
            high_watermark = directory.high_watermarks.get(topic_partition)
            found.append(FoundLog(topic_partition, f"{path}/{name}", checkpointed, high_watermark))
        return found

    def _note_unfinished_move(self, path: str, name: str) -> None:
        """The copying begins anew: where it had got to is not worth the risk."""
        self.disk.remove_tree(f"{path}/{name}")
        topic_partition = parse_directory_name(name.rpartition(".")[0])
        if topic_partition is not None:
            self.wanted[topic_partition] = path

    def _open_logs(
        self, directory: LogDir, found: list[FoundLog], now_ms: int
    ) -> Iterator[tuple[int, int]]:
        opened = self._open_all(partial(self._open_log, now_ms=now_ms), found)
        for done, (each, log) in enumerate(zip(found, opened, strict=True), 1):
            earlier = self.directory_of(each.topic_partition)
            if earlier is not None or each.topic_partition in self.broken:
                self._admit_one_of_two(earlier, directory, each, log)
            else:
                self._admit(directory, each, log)
            yield done, len(found)

    def _admit(self, directory: LogDir, found: FoundLog, log: PartitionLog | str) -> None:
        where = found.topic_partition
        if isinstance(log, str):
            self.broken[where] = log
            directory.unopened[where] = found
            return
        directory.logs[where] = log
        if found.high_watermark is not None and not found.checkpointed.clean:
            directory.high_watermarks[where] = log.notes.limit(found.high_watermark)
        if not found.checkpointed.clean and log.notes.truncated_to is not None:
            directory.seen_epochs.pop(where, None)  # perhaps those of a deleted log of this name
        if log.topic_id is not None and found.was_never_flushed(log.notes):
            # It is there, but nothing tells that it would survive a power loss.
            directory.new_logs[where] = log

    def _admit_one_of_two(
        self, earlier: LogDir | None, directory: LogDir, found: FoundLog, log: PartitionLog | str
    ) -> None:
        """A move between directories was interrupted, or could not be undone: keep the log that has more.

        If that cannot be told, neither is used, because the wrong one would pass for all that there ever was.
        """
        where = found.topic_partition
        other = None if earlier is None else earlier.logs[where]
        if earlier is None or other is None or isinstance(log, str) or _differ(log, other):
            if earlier is not None and other is not None:
                self._close_unused(earlier, other)
            if isinstance(log, PartitionLog):
                self._close_unused(directory, log)
            else:
                directory.unopened[where] = found
            self.broken[where] = (
                f"{found.path} and another log directory hold it, and which log is newer cannot be told: move one away"
            )
            _logger.error("%s: %s", where, self.broken[where])
        elif _progress(log) > _progress(other):
            self._close_unused(earlier, other)
            del earlier.unopened[where]
            self._admit(directory, found, log)
            try:
                self._set_stray(other.directory)
            except DiskFailed as error:
                self.take_offline(earlier.path, str(error))
        else:
            log.abandon()
            self._set_stray(found.path)

    def _close_unused(self, directory: LogDir, log: PartitionLog) -> None:
        where = log.topic_partition
        log.abandon()
        directory.logs.pop(where, None)
        directory.new_logs.pop(where, None)
        known = Checkpointed(
            recovery_point=log.recovery_point,
            log_start_offset=log.log_start_offset,
            cleaned_to=log.cleaned_to,
        )
        high_watermark = directory.high_watermarks.pop(where, None)
        directory.unopened[where] = FoundLog(where, log.directory, known, high_watermark)

    def _set_stray(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        target = f"{parent}/{self._aside(name, 'stray')}"
        self.disk.rename(path, target)
        _logger.warning("%s: another directory holds more of this log; now %s", path, target)

    def _open_log(self, found: FoundLog, *, now_ms: int) -> PartitionLog | str:
        """The log, or why it cannot be opened."""
        topic_partition, path, checkpointed, _ = found
        try:
            return open_log(
                self.disk,
                path,
                topic_partition,
                self._config_for(topic_partition.topic),
                now_ms=now_ms,
                checkpointed=checkpointed,
                topic_id=topic_id_of(self.disk, found),
            )
        except (CorruptBatch, DiskFailed) as error:
            _logger.exception("%s cannot be opened; the other partitions go on", topic_partition)
            return str(error)

    def _read_offsets(self, path: str, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self.disk, f"{path}/{name}")
        except CorruptBatch as error:
            _logger.warning("%s is damaged and is started anew (%s)", name, error)
            return {}

    def close(self, now_ms: int, *, run: CleanRun = UNKNOWN_RUN) -> None:
        """Close every log and leave the marker that spares the next start a recovery."""
        for path, directory in list(self._online.items()):
            for copy in directory.futures.values():
                copy.abandon()
            try:
                new_log_sync = NewLogSync(self.disk, path, tuple(directory.new_logs.values()))
                close_logs(self.disk, new_log_sync, list(directory.logs.values()), now_ms=now_ms)
                directory.new_logs.clear()
                checkpoints = self._checkpoints(directory)
                for checkpoint, content in checkpoints.files:
                    self.disk.replace(checkpoint, content)
                self.checkpointed(checkpoints)
                marker = run.encode(directory.unopened)
                self.disk.replace(f"{path}/{CLEAN_SHUTDOWN_FILE}", marker)
            except DiskFailed as error:
                # Without the marker the next start verifies what is here; nothing is lost.
                self.take_offline(path, str(error))
            else:
                directory.release()
        self._online.clear()

    def take_offline(self, path: str, reason: str) -> list[TopicPartition]:
        """Stop using a directory whose disk failed. Returns the partitions that lie in it."""
        _logger.error("log directory %s goes offline: %s", path, reason)
        self.offline[path] = reason
        directory = self._online.pop(path, None)
        if directory is None:
            return []
        for log in (*directory.logs.values(), *directory.futures.values()):
            log.abandon()
        directory.release()
        return list(directory.logs)

    @property
    def previous_run(self) -> CleanRun:
        """The incarnation that stopped cleanly before this one, with all directories."""
        return next(iter(self._previous)) if len(self._previous) == 1 else UNKNOWN_RUN

    # ---- logs

    def __iter__(self) -> Iterator[PartitionLog]:
        for directory in self._online.values():
            yield from directory.logs.values()

    @property
    def online(self) -> tuple[LogDir, ...]:
        """The directories in use."""
        return tuple(self._online.values())

    def usage(self, directory: LogDir) -> DiskUsage:
        """The room on the volume of a directory. DiskFailed if it cannot be told."""
        return self.disk.usage(directory.path)

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        """The log of a partition, if it is here."""
        directory = self.directory_of(topic_partition)
        return None if directory is None else directory.logs[topic_partition]

    def directory_of(self, topic_partition: TopicPartition) -> LogDir | None:
        """The directory that holds a partition."""
        for directory in self._online.values():
            if topic_partition in directory.logs:
                return directory
        return None

    def is_moving(self, topic_partition: TopicPartition) -> bool:
        """Whether a log is being copied to another directory."""
        return any(topic_partition in directory.futures for directory in self._online.values())

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        *,
        now_ms: int,
        on_failed: Callable[[str, DiskFailed], None] | None = None,
    ) -> PartitionLog:
        """A new, empty log where it is wanted, or in the directory that has the fewest and some room.

        A directory that fails, other than by being full, goes offline by `on_failed` (default: `take_offline`), and the next
        one is tried. DiskFailed if none can be written.
        """
        failure = DiskFailed(f"{topic_partition}: no log directory is online")
        wanted = self.wanted.pop(topic_partition, None)
        directories = sorted(
            self._online.values(), key=lambda each: (each.path != wanted, len(each.logs))
        )
        usable: list[LogDir] = []
        for directory in directories:
            try:
                self._free_name(directory, topic_partition)
                usable.append(directory)
            except DiskFull as error:
                failure = error
            except DiskFailed as error:
                failure = error
                self._give_up(directory, error, on_failed)
        for directory in usable:
            try:
                return self._create_in(directory, topic_partition, topic_id, now_ms)
            except DiskFailed as error:
                failure = error
            try:
                # Otherwise the partition would be found in two directories.
                path = f"{directory.path}/{topic_partition}"
                if self.disk.exists(path):
                    self.disk.remove_tree(path)
            except DiskFailed as error:
                failure = error
            if not isinstance(failure, DiskFull):
                self._give_up(directory, failure, on_failed)
        raise failure

    def _give_up(
        self,
        directory: LogDir,
        error: DiskFailed,
        on_failed: Callable[[str, DiskFailed], None] | None,
    ) -> None:
        if on_failed is None:
            self.take_offline(directory.path, str(error))
        else:
            on_failed(directory.path, error)

    def _free_name(self, directory: LogDir, topic_partition: TopicPartition) -> None:
        """Rename a directory that has the name of a new log: the log of an older topic, which could not be opened."""
        name = str(topic_partition)
        path = f"{directory.path}/{name}"
        if self.disk.exists(path):
            target = f"{directory.path}/{self._aside(name, 'stray')}"
            self.disk.rename(path, target)
            directory.unopened.pop(topic_partition, None)
            _logger.warning("%s could not be opened and makes room: now %s", path, target)

    def _create_in(
        self, directory: LogDir, topic_partition: TopicPartition, topic_id: UUID, now_ms: int
    ) -> PartitionLog:
        path = f"{directory.path}/{topic_partition}"
        log = open_log(
            self.disk,
            path,
            topic_partition,
            self._config_for(topic_partition.topic),
            now_ms=now_ms,
            topic_id=topic_id,
        )
        write_topic_id(self.disk, path, topic_id, durable=False)
        directory.high_watermarks.pop(topic_partition, None)
        directory.seen_epochs.pop(topic_partition, None)
        # Of a deleted log with this name, until they are written again.
        log.note_truncation(0, checkpointed=directory.checkpointed.get(topic_partition, 0))
        directory.logs[topic_partition] = directory.new_logs[topic_partition] = log
        self.broken.pop(topic_partition, None)
        return log

    def adopt(self, log: PartitionLog, topic_id: UUID) -> None:
        """A log that does not know its topic belongs to this one."""
        write_topic_id(self.disk, log.directory, topic_id)
        log.topic_id = topic_id

    def new_log_syncs(self, limit: int) -> Iterator[tuple[LogDir, NewLogSync]]:
        """Per directory some new logs whose identity is to be made durable, elsewhere; then `mark_durable`."""
        for directory in list(self._online.values()):
            logs = some_of(directory.new_logs.values(), limit)
            if logs:
                yield directory, NewLogSync(self.disk, directory.path, logs)

    def mark_durable(self, directory: LogDir, new_log_sync: NewLogSync) -> None:
        """The logs of `new_log_sync` are durable."""
        for log in new_log_sync.logs:
            if directory.new_logs.get(log.topic_partition) is log:
                del directory.new_logs[log.topic_partition]

    def set_aside(self, topic_partition: TopicPartition, suffix: str) -> str | None:
        """Rename a log's directory to a name that ends in `-delete` or `-stray`. Returns the new path, which is not durable yet.

        After the rename the log counts as deleted. Its files may be removed later, or are `leftovers` of the next start.
        """
        directory = self.directory_of(topic_partition)
        if directory is None:
            return None
        log = directory.logs.pop(topic_partition)
        directory.high_watermarks.pop(topic_partition, None)
        directory.seen_epochs.pop(topic_partition, None)
        directory.new_logs.pop(topic_partition, None)
        log.abandon()
        target = f"{directory.path}/{self._aside(str(topic_partition), suffix)}"
        self.disk.rename(log.directory, target)
        return target

    def _aside(self, name: str, suffix: str) -> str:
        tail = f".{self._new_id().hex}-{suffix}"
        return f"{name[: MAX_NAME - len(tail)]}{tail}"

    # ---- checkpoints

    def checkpoints(self) -> Iterator[DirectoryCheckpoints]:
        """The checkpoint files to write, for each directory. They may be written in another thread; then call `checkpointed`."""
        for directory in list(self._online.values()):
            yield self._checkpoints(directory)

    def checkpointed(self, checkpoints: DirectoryCheckpoints) -> None:
        """The files are in place."""
        directory = checkpoints.directory
        directory.checkpointed = checkpoints.offsets
        directory.noted_copies = checkpoints.copies
        self.log_starts_written(checkpoints)
        for log, truncation in checkpoints.truncated:
            # Else it was deleted, moved or lost with its disk meanwhile. At a stop it is closed already.
            if directory.holds(log) and self._online.get(directory.path) is directory:
                with suppress(DiskFull):  # the next ones try again
                    log.forget_truncation(truncation)

    def log_starts_written(self, checkpoints: DirectoryCheckpoints) -> None:
        """The log start offsets in these files count, unless the log was truncated since."""
        for log, start, truncations in checkpoints.starts:
            if log.truncations == truncations:
                log.checkpointed_start = start

    def _checkpoints(self, directory: LogDir) -> DirectoryCheckpoints:
        logs = directory.logs.values()
        recovery_points = {
            log.topic_partition: 0
            if directory.new_logs.get(log.topic_partition) is log
            else log.recovery_point
            for log in logs
        }
        present = (*logs, *directory.futures.values())  # a copy only counts once its start is here
        # Also of a log whose first segment starts there: a power loss may undo that the ones before it were removed.
        log_starts = {
            log.topic_partition: log.log_start_offset for log in present if log.log_start_offset > 0
        }
        cleaned_to = {
            log.topic_partition: log.cleaned_to for log in logs if log.cleaned_to is not None
        }
        high_watermarks = dict(directory.high_watermarks)
        for topic_partition, found in directory.unopened.items():
            # The log may open at the next start, so its entries are kept.
            known = found.checkpointed
            recovery_points[topic_partition] = known.recovery_point
            log_starts[topic_partition] = known.log_start_offset
            if known.cleaned_to is not None:
                cleaned_to[topic_partition] = known.cleaned_to
            if found.high_watermark is not None:
                high_watermarks[topic_partition] = found.high_watermark
        files = [
            (f"{directory.path}/{name}", encode_offsets(offsets))
            for name, offsets in (
                (RECOVERY_POINT_FILE, recovery_points),
                (LOG_START_FILE, log_starts),
                (HIGH_WATERMARK_FILE, high_watermarks),
                (SEEN_EPOCH_FILE, directory.seen_epochs),
                (CLEANER_FILE, cleaned_to),
            )
        ]
        offsets = _largest(directory, recovery_points, log_starts, cleaned_to)
        # The files may be in place before `checkpointed` hears: a log that is created meanwhile must know of both.
        directory.checkpointed = largest_offsets(directory.checkpointed, offsets)
        truncated = [(log, log.truncation) for log in present]
        moved = [log for log in present if log.checkpointed_start != log.log_start_offset]
        return DirectoryCheckpoints(
            directory,
            files,
            offsets,
            [(log, cut) for log, cut in truncated if cut is not None],
            [(log, log.log_start_offset, log.truncations) for log in moved],
            {
                copy: directory.seen_epochs.get(where, -1)
                for where, copy in directory.futures.items()
            },
        )


def _differ(log: PartitionLog, other: PartitionLog) -> bool:
    """Whether two logs belong to different topics."""
    ids = {log.topic_id, other.topic_id} - {None}
    return len(ids) > 1


def _progress(log: PartitionLog) -> tuple[int, int, int]:
    # The size tells a whole log from one whose removal was interrupted.
    return log.leader_epochs.latest, log.log_end_offset, log.size


def _largest(
    directory: LogDir, *checkpoints: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The largest offset that the files have of each partition; 1 at least of one whose leader epoch is known."""
    epochs_known = dict.fromkeys(directory.seen_epochs, 1)
    return largest_offsets(epochs_known, *checkpoints, directory.high_watermarks)


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition whose log a directory holds, by its name; None for any other directory."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not partition.isascii() or not partition.isdigit():
        return None
    return TopicPartition(topic, int(partition))
