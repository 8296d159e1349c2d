"""One contract for both disks: what the log asks of them, asked of the real one and of the one in memory."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from headrace.errors import DiskFailed, DiskFull
from headrace.log.files import os_disk as disk_module
from headrace.log.files import reserved_space
from headrace.log.files.disk import Disk
from headrace.log.files.os_disk import OsDisk
from headrace.testing.memory_disk import MemoryDisk


@pytest.fixture(params=["os", "os with one open file", "memory"])
def disk(request: pytest.FixtureRequest) -> Disk:
    match request.param:
        case "memory":
            return MemoryDisk()
        case "os":
            return OsDisk()
        case _:
            return OsDisk(max_open_files=1)


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> str:
    path = f"{tmp_path}/root"
    disk.make_directory(path)
    return path


def test_appended_bytes_are_read_back(disk: Disk, root: str) -> None:
    file = disk.create(f"{root}/a")
    file.append(b"one")
    file.append(bytearray(b"two"))
    file.append(memoryview(b"three"))
    assert file.size == 11
    assert file.read(0, 100) == b"onetwothree"
    assert file.read(3, 3) == b"two"
    assert bytes(file.view(3, 100)) == b"twothree"


def test_reading_past_the_end_yields_nothing(disk: Disk, root: str) -> None:
    file = disk.create(f"{root}/a")
    assert file.read(0, 5) == b""
    assert bytes(file.view(0, 5)) == b""
    file.append(b"x" * 100_000)
    assert len(file.view(0, 100_000)) == 100_000
    file.append(b"y")
    assert bytes(file.view(100_001, 5)) == b""
    assert bytes(file.view(200_000, 5)) == b""
    assert file.read(100_001, 5) == b""


def test_a_view_follows_the_growth_of_its_file(disk: Disk, root: str) -> None:
    file = disk.create(f"{root}/a")
    file.append(b"a" * 70_000)
    first = file.view(0, 70_000)
    file.append(b"b" * 70_000)
    assert bytes(file.view(69_999, 3)) == b"abb"
    assert bytes(file.view(0, 140_000)) == b"a" * 70_000 + b"b" * 70_000
    assert bytes(first) == b"a" * 70_000


def test_two_files_do_not_disturb_each_other(disk: Disk, root: str) -> None:
    first, second = disk.create(f"{root}/a"), disk.create(f"{root}/b")
    for _ in range(3):
        first.append(b"a")
        second.append(b"b")
        assert bytes(first.view(0, 9)) == b"a" * first.size
        assert second.read(0, 9) == b"b" * second.size


def test_truncation(disk: Disk, root: str) -> None:
    file = disk.create(f"{root}/a")
    file.append(b"abcdef")
    assert bytes(file.view(0, 6)) == b"abcdef"
    file.truncate(2)
    assert (file.size, file.read(0, 9), bytes(file.view(0, 9))) == (2, b"ab", b"ab")
    file.append(b"XY")
    assert bytes(file.view(0, 9)) == b"abXY"


def test_a_closed_file_opens_itself_again(disk: Disk, root: str) -> None:
    file = disk.create(f"{root}/a")
    file.append(b"abc")
    view = file.view(0, 3)
    file.close()
    file.close()
    file.append(b"def")
    assert file.read(0, 9) == b"abcdef"
    assert bytes(view) == b"abc"


def test_an_opened_file_goes_on_at_its_end(disk: Disk, root: str) -> None:
    disk.create(f"{root}/a").append(b"abc")
    assert disk.open(f"{root}/a").size == 3
    disk.open(f"{root}/a", 3).append(b"def")
    assert disk.read_bytes(f"{root}/a") == b"abcdef"


def test_creating_empties_what_was_there(disk: Disk, root: str) -> None:
    disk.create(f"{root}/a").append(b"abc")
    assert disk.create(f"{root}/a").size == 0
    assert disk.read_bytes(f"{root}/a") == b""


def test_names(disk: Disk, root: str) -> None:
    disk.create(f"{root}/b").append(b"12")
    disk.make_directory(f"{root}/c/d")
    disk.make_directory(f"{root}/c/d")
    assert [(stat.name, stat.size) for stat in disk.list_files(root)] == [("b", 2)]
    assert disk.list_directories(root) == ["c"]
    assert disk.exists(f"{root}/b")
    assert disk.exists(f"{root}/c/d")
    assert not disk.exists(f"{root}/x")
    assert disk.read_bytes(f"{root}/x") is None


def test_rename_replaces_and_an_open_file_follows(disk: Disk, root: str) -> None:
    disk.create(f"{root}/target").append(b"old")
    file = disk.create(f"{root}/source")
    file.append(b"new")
    disk.rename(f"{root}/source", f"{root}/target")
    file.renamed(f"{root}/target")
    assert file.path == f"{root}/target"
    file.close()
    file.append(b"er")
    assert disk.read_bytes(f"{root}/target") == b"newer"
    assert not disk.exists(f"{root}/source")


def test_a_directory_is_renamed_with_what_is_in_it(disk: Disk, root: str) -> None:
    disk.make_directory(f"{root}/t-0")
    disk.create(f"{root}/t-0/a").append(b"x")
    disk.rename(f"{root}/t-0", f"{root}/t-0.1-delete")
    assert disk.read_bytes(f"{root}/t-0.1-delete/a") == b"x"
    assert disk.list_directories(root) == ["t-0.1-delete"]
    disk.remove_tree(f"{root}/t-0.1-delete")
    assert disk.list_directories(root) == []


@pytest.mark.parametrize("durable", [True, False])
def test_replace_leaves_nothing_else_behind(disk: Disk, root: str, durable: bool) -> None:
    disk.replace(f"{root}/a", b"old", durable=durable)
    disk.replace(f"{root}/a", b"new", durable=durable)
    assert disk.read_bytes(f"{root}/a") == b"new"
    assert [stat.name for stat in disk.list_files(root)] == ["a"]


def test_removing_what_is_not_there_is_no_error(disk: Disk, root: str) -> None:
    disk.create(f"{root}/a")
    disk.remove(f"{root}/a")
    disk.remove(f"{root}/a")
    assert not disk.exists(f"{root}/a")


def test_a_missing_file_or_directory_is_a_failed_disk(disk: Disk, root: str) -> None:
    with pytest.raises(DiskFailed, match="missing"):
        disk.open(f"{root}/missing").read(0, 1)
    with pytest.raises(DiskFailed, match="missing"):
        disk.list_files(f"{root}/missing")
    with pytest.raises(DiskFailed, match="missing"):
        disk.create(f"{root}/missing/a")
    with pytest.raises(DiskFailed, match="missing"):
        disk.rename(f"{root}/missing", f"{root}/b")
    with pytest.raises(DiskFailed, match="missing"):
        disk.sync_directory(f"{root}/missing")
    with pytest.raises(DiskFailed, match="missing"):
        disk.remove_tree(f"{root}/missing")


def test_syncing(disk: Disk, root: str) -> None:
    file = disk.create(f"{root}/a")
    file.append(b"abc")
    sync = file.syncer()
    file.close()  # a syncer has a descriptor of its own
    sync()
    disk.sync_directory(root)
    assert disk.read_bytes(f"{root}/a") == b"abc"


def test_a_lock_is_held_once(disk: Disk, root: str) -> None:
    release = disk.lock(f"{root}/.lock")
    with pytest.raises(DiskFailed, match="another broker"):
        disk.lock(f"{root}/.lock")
    release()
    disk.lock(f"{root}/.lock")()


def test_usage_tells_how_much_room_there_is(disk: Disk, root: str) -> None:
    usage = disk.usage(root)
    assert 0 < usage.usable_bytes <= usage.total_bytes
    with pytest.raises(DiskFailed, match="missing"):
        disk.usage(f"{root}/missing")


def test_the_time_of_the_last_change(disk: Disk, root: str) -> None:
    file = disk.create(f"{root}/a")
    file.append(b"abc")
    disk.set_modified(f"{root}/a", 1_600_000_000_123)
    assert file.modified_ms == 1_600_000_000_123
    assert [stat.modified_ms for stat in disk.list_files(root)] == [1_600_000_000_123]
    if isinstance(disk, MemoryDisk):
        disk.now_ms = 1_700_000_000_000
    file.append(b"def")
    assert file.modified_ms >= 1_700_000_000_000
    with pytest.raises(DiskFailed, match="missing"):
        disk.set_modified(f"{root}/missing", 1)


# ---- the real disk


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Make the kernel refuse growth past `size`, in the middle of a write if need be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_stops_half_way_leaves_nothing(tmp_path: Path) -> None:
    file = OsDisk().create(f"{tmp_path}/a")
    file.append(b"whole")
    with largest_file(8), pytest.raises(DiskFailed, match="too large"):
        file.append(b"torn in the middle")
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert file.size == 5
    file.append(b"!")
    assert file.read(0, 9) == b"whole!"


def test_descriptors_are_bounded(tmp_path: Path) -> None:
    disk = OsDisk(max_open_files=4)
    before = len(list(Path("/proc/self/fd").iterdir()))
    files = [disk.create(f"{tmp_path}/{number}") for number in range(40)]
    for file in files:
        file.append(b"x")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 4
    assert all(file.read(0, 1) == b"x" for file in files)
    for file in files:
        file.close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


# ---- the disk in memory


def crashed(disk: MemoryDisk, seed: int) -> None:
    disk.crash(Random(seed))


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/d")
    disk.sync_directory("/")
    return disk


def survivors(*, synced: bytes, unsynced: bytes) -> set[bytes]:
    found: set[bytes] = set()
    for seed in range(60):
        disk = new_disk()
        file = disk.create("/d/a")
        file.append(synced)
        file.syncer()()
        disk.sync_directory("/d")
        file.append(unsynced)
        crashed(disk, seed)
        found.add(disk.read_bytes("/d/a") or b"")
    return found


def test_synced_bytes_survive_and_of_the_others_a_prefix_maybe_torn() -> None:
    found = survivors(synced=b"KEPT", unsynced=b"123")
    assert all(content.startswith(b"KEPT") for content in found)
    assert {b"KEPT", b"KEPT1", b"KEPT12", b"KEPT123"} <= found
    assert any(content[4:] not in (b"", b"1", b"12", b"123") for content in found), "torn"


def test_a_syncer_covers_what_was_written_before_it_was_asked_for() -> None:
    found: set[bytes] = set()
    for seed in range(30):
        disk = new_disk()
        file = disk.create("/d/a")
        disk.sync_directory("/d")
        file.append(b"before")
        sync = file.syncer()
        file.append(b"after")
        sync()
        crashed(disk, seed)
        found.add(disk.read_bytes("/d/a") or b"")
    assert all(content.startswith(b"before") for content in found)
    assert b"before" in found


def test_a_cut_that_was_not_synced_may_come_undone() -> None:
    found: set[bytes] = set()
    for seed in range(60):
        disk = new_disk()
        file = disk.create("/d/a")
        disk.sync_directory("/d")
        file.append(b"abcdef")
        file.syncer()()
        file.truncate(4)
        file.truncate(2)
        file.append(b"XY")
        crashed(disk, seed)
        found.add(disk.read_bytes("/d/a") or b"")
    assert {b"abcdef", b"ab", b"abX", b"abXY"} <= found
    assert all(content.startswith(b"ab") for content in found)


def test_names_survive_in_order_once_synced_or_by_luck() -> None:
    outcomes: set[tuple[str, ...]] = set()
    for seed in range(60):
        disk = new_disk()
        disk.create("/d/durable")
        disk.sync_directory("/d")
        disk.create("/d/first")
        disk.rename("/d/first", "/d/second")
        disk.remove("/d/durable")
        crashed(disk, seed)
        outcomes.add(tuple(sorted(stat.name for stat in disk.list_files("/d"))))
    assert outcomes == {("durable",), ("durable", "first"), ("durable", "second"), ("second",)}


def test_a_directory_that_was_never_synced_takes_its_files_with_it() -> None:
    outcomes: set[bool] = set()
    for seed in range(30):
        disk = MemoryDisk()
        disk.make_directory("/d")
        disk.replace("/d/a", b"x", durable=True)
        crashed(disk, seed)
        outcomes.add(disk.exists("/d/a"))
    assert outcomes == {True, False}


def test_the_same_seed_gives_the_same_crash() -> None:
    contents = []
    for _ in range(2):
        disk = new_disk()
        for name in "abc":
            disk.create(f"/d/{name}").append(bytes(range(100)))
        crashed(disk, 7)
        names = [stat.name for stat in disk.list_files("/d")]
        contents.append([(name, disk.read_bytes(f"/d/{name}")) for name in names])
    assert contents[0] == contents[1]


def test_a_file_from_before_the_crash_is_dead() -> None:
    disk = new_disk()
    file = disk.create("/d/a")
    crashed(disk, 0)
    with pytest.raises(AssertionError, match="before the crash"):
        file.append(b"x")


def test_a_full_disk_refuses_whole_writes() -> None:
    disk = MemoryDisk(capacity_bytes=10)
    file = disk.create("/a")
    file.append(b"12345678")
    with pytest.raises(DiskFull):
        file.append(b"123")
    assert file.read(0, 20) == b"12345678"
    assert disk.usage("/") == (10, 2)
    file.append(b"90")
    disk.remove("/a")
    assert disk.used_bytes == 0


def test_a_failed_sync_loses_the_bytes_even_if_it_is_tried_again() -> None:
    outcomes: set[bytes] = set()
    for seed in range(30):
        disk = new_disk()
        file = disk.create("/d/a")
        disk.sync_directory("/d")
        file.append(b"x")
        disk.fail_syncs = True
        with pytest.raises(DiskFailed):
            file.syncer()()
        disk.fail_syncs = False
        file.syncer()()
        crashed(disk, seed)
        outcomes.add(disk.read_bytes("/d/a") or b"")
    assert b"" in outcomes


def test_pages_that_were_read_are_let_go_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mebibyte = 1024 * 1024
    monkeypatch.setattr(disk_module, "_MOST_MAPPED_BYTES", mebibyte)
    path = str(tmp_path / "large")
    file = OsDisk().create(path)
    for number in range(16):
        file.append(bytes([number]) * mebibyte)
    first = file.view(0, mebibyte)
    assert all(bytes(file.view(n * mebibyte, mebibyte)) == bytes([n]) * mebibyte for n in range(16))
    assert _resident_bytes(path) <= 3 * mebibyte
    assert bytes(first) == bytes(mebibyte), "who held a view before finds the bytes again"


def test_room_taken_ahead_is_given_back(tmp_path: Path) -> None:
    def room_bytes() -> int:
        return (tmp_path / "growing").stat().st_blocks * 512

    mebibyte = 1024 * 1024
    slack = 64 * 1024  # what a file system needs for itself
    file = OsDisk().create(str(tmp_path / "growing"))
    for _ in range(3):
        file.append(bytes(mebibyte))
    assert room_bytes() >= 4 * mebibyte, "as much again as there was"
    assert (tmp_path / "growing").stat().st_size == 3 * mebibyte
    file.truncate(file.size)
    assert room_bytes() <= 3 * mebibyte + slack
    file.append(b"more")
    assert room_bytes() >= 4 * mebibyte
    file.close()
    assert room_bytes() <= 3 * mebibyte + slack
    assert file.read(3 * mebibyte - 1, 100) == b"\0more"


def test_no_room_is_taken_ahead_where_there_is_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserved_space, "_KEEP_FREE_BYTES", 1 << 60)
    file = OsDisk().create(str(tmp_path / "growing"))
    for _ in range(3):
        file.append(bytes(1024 * 1024))
    assert (tmp_path / "growing").stat().st_blocks * 512 < 4 * 1024 * 1024


def _resident_bytes(path: str) -> int:
    smaps = Path("/proc/self/smaps").read_text().splitlines()
    at = next(number for number, line in enumerate(smaps) if line.endswith(path))
    size = next(line for line in smaps[at:] if line.startswith("Rss:"))
    return int(size.split()[1]) * 1024
