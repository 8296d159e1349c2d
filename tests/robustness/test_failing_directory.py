"""One of two log directories goes bad: its partitions are refused, the others live on, and nothing is made up.

The directory's path becomes a plain file: what is open stays open, and everything by name fails, as on a disk that is
gone.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.wire.error_code import ErrorCode
from tests.robustness.wire_calls import create_topic, fetch, produce, produce_result
from tests.support.headrace_process import HeadraceProcess

PARTITIONS = 8
SOON_S = 20.0
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}


@dataclass
class TwoDirectories:
    """A broker with two directories, one of which can be taken away and brought back."""

    broker: HeadraceProcess
    paths: tuple[Path, Path]

    def partitions_in(self, number: int) -> list[int]:
        names = (path.name for path in self.paths[number].iterdir() if path.is_dir())
        return sorted(int(name.removeprefix("spread-")) for name in names if "spread-" in name)

    def take_away(self, number: int) -> None:
        path = self.paths[number]
        path.rename(path.with_suffix(".gone"))
        path.write_text("not a directory")

    def bring_back(self, number: int) -> None:
        path = self.paths[number]
        path.unlink()
        path.with_suffix(".gone").rename(path)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoDirectories]:
    paths = (tmp_path / "first", tmp_path / "second")
    properties = {**SETTINGS, "log.dirs": ",".join(map(str, paths))}
    with HeadraceProcess(tmp_path / "broker", properties=properties) as broker:
        yield TwoDirectories(broker, paths)


def test_the_other_directory_lives_on(two: TwoDirectories) -> None:
    with Connection("127.0.0.1", two.broker.port) as connection:
        create_topic(connection, "spread", partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            produce(connection, "spread", [b"before"], partition=partition)
        good, bad = two.partitions_in(0), two.partitions_in(1)
        assert len(good) == len(bad) == PARTITIONS // 2
        two.take_away(1)
        for partition in bad:
            wait_until_refused(connection, partition)
        for partition in good:
            assert produce(connection, "spread", [b"after"], partition=partition) == 1
            assert fetch(connection, "spread", 0, partition=partition) == [b"before", b"after"]
        # New topics go to the directory that is left.
        create_topic(connection, "new")
        assert produce(connection, "new", [b"x"]) == 0


def test_a_start_without_one_directory_makes_up_no_empty_logs(two: TwoDirectories) -> None:
    with Connection("127.0.0.1", two.broker.port) as connection:
        create_topic(connection, "spread", partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            produce(connection, "spread", [b"before"], partition=partition)
        good, bad = two.partitions_in(0), two.partitions_in(1)
    two.broker.stop()
    two.take_away(1)
    two.broker.start()
    with Connection("127.0.0.1", two.broker.port) as connection:
        for partition in bad:
            error_code, _ = produce_result(connection, "spread", [b"lost?"], partition=partition)
            assert error_code == ErrorCode.KAFKA_STORAGE_ERROR
        for partition in good:
            assert produce(connection, "spread", [b"after"], partition=partition) == 1
        create_topic(connection, "new")
        assert produce(connection, "new", [b"x"]) == 0
    two.broker.stop()
    two.bring_back(1)
    two.broker.start()
    with Connection("127.0.0.1", two.broker.port) as connection:
        for partition in bad:
            assert fetch(connection, "spread", 0, partition=partition) == [b"before"]
            assert produce(connection, "spread", [b"after"], partition=partition) == 1


def wait_until_refused(connection: Connection, partition: int) -> None:
    """The broker finds out when it next uses a name in the directory."""
    deadline = time.monotonic() + SOON_S
    while True:
        error_code, _ = produce_result(connection, "spread", [b"lost"], partition=partition)
        if error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            return
        assert error_code == ErrorCode.NONE
        assert time.monotonic() < deadline
        time.sleep(0.05)
