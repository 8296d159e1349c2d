"""Disks that are full, slow or broken. A directory that failed is used again when its broker is started again."""

from dataclasses import replace
from typing import Final

from headrace.testing.simulation.broker import LOG_DIRS
from headrace.testing.simulation.faults.act import Act

_MOST_LEFT_BYTES: Final = 600


def fill(act: Act) -> None:
    """No room for a while, but a little: a small batch may fit where a large one, or a new segment's index, does not."""
    disk = act.target.disk
    left_bytes = act.chance.randrange(_MOST_LEFT_BYTES)
    disk.capacity_bytes = disk.used_bytes + left_bytes
    act.tell(f"the disk of {act.target.name} has {left_bytes} bytes left")

    def make_room() -> None:
        disk.capacity_bytes = None

    act.undo_later(make_room)


def slow_down(act: Act) -> None:
    """Everything that runs in worker threads, syncs above all, takes long."""
    broker, process = act.target, act.target.process
    slowness_ms = act.chance.choice((50, 300, 1_500))
    act.tell(f"the disk of {broker.name} takes {slowness_ms} ms for a sync")
    if process is None:
        return
    before = process.pace
    process.pace = replace(before, thread_us=slowness_ms * 1_000)

    def undo() -> None:
        process.pace = before

    act.undo_later(undo)


def spoil_sector(act: Act) -> None:
    """A byte of a log cannot be read any more."""
    disk = act.target.disk
    files = [
        (path, size)
        for directory in LOG_DIRS
        for path, size in disk.file_sizes(directory).items()
        if size and path.endswith((".log", ".index", ".timeindex"))
    ]
    if files and act.survival.may_die(act.target, loses=False):
        path, size = act.chance.choice(files)
        bad = path, act.chance.randrange(size)
        act.tell(f"{act.target.name} cannot read byte {bad[1]} of {path} any more")
        disk.bad_bytes.add(bad)
        act.undo_later(lambda: disk.bad_bytes.discard(bad))


def break_directory(act: Act) -> None:
    """Everything in one of the log directories fails."""
    disk = act.target.disk
    directory = act.chance.choice(act.target.log_dirs)
    if act.survival.may_die(act.target, loses=False):
        act.tell(f"the disk of {act.target.name} under {directory} fails")
        disk.failing.add(directory)
        act.undo_later(lambda: disk.failing.discard(directory))
