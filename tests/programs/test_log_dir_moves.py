"""Replicas move between the log directories of a broker while they are written and read."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.differential.requests import LATEST, batch, fetch, list_offsets, produce

PATIENCE_S = 20


class TwoDisks:
    """A broker with two directories, and a client of it."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.first, self.second = str(directory / "one"), str(directory / "two")
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.broker = EmbeddedBroker({"log.dirs": f"{self.first},{self.second}", **named})

    def connect(self) -> Connection:
        host, _, port = self.broker.bootstrap_servers.rpartition(":")
        return Connection(host, int(port))

    def append(self, *values: bytes, index: int = 0) -> None:
        with self.connect() as connection:
            answer = connection.send(produce("a", batch(*values), partition=index), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0

    def move(self, path: str, topic: str = "a", index: int = 0, version: int = 2) -> int:
        wanted = AlterReplicaLogDir(
            path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])]
        )
        with self.connect() as connection:
            answer = connection.send(AlterReplicaLogDirsRequest(dirs=[wanted]), version)
        return answer.results[0].partitions[0].error_code

    def places(self) -> dict[str, list[tuple[int, bool]]]:
        """Per directory, partitions of the topic and whether they are on their way there."""
        with self.connect() as connection:
            answer = connection.send(DescribeLogDirsRequest(topics=None), 4)
        return {
            result.log_dir: [
                (one.partition_index, one.is_future_key)
                for topic in result.topics
                if topic.name == "a"
                for one in topic.partitions
            ]
            for result in answer.results
        }

    def place(self) -> str:
        """Where partition 0 is."""
        return next(path for path, here in self.places().items() if (0, False) in here)

    def elsewhere(self) -> str:
        return self.second if self.place() == self.first else self.first

    def wait_until_at(self, path: str) -> None:
        other = self.second if path == self.first else self.first
        self._wait_until({path: [(0, False)], other: []})

    def wait_until_on_the_way(self, origin: str, target: str) -> None:
        self._wait_until({origin: [(0, False)], target: [(0, True)]})

    def _wait_until(self, places: dict[str, list[tuple[int, bool]]]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.places() != places:
            assert time.monotonic() < deadline, self.places()
            time.sleep(0.02)


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[TwoDisks]:
    disks = TwoDisks(tmp_path)
    with disks.broker:
        disks.broker.create_topic("a")
        yield disks


def test_a_log_moves_with_all_it_has(disks: TwoDisks) -> None:
    for number in range(10):
        disks.append(b"%d" % number, b"x" * 300_000)
    origin, target = disks.place(), disks.elsewhere()
    before = Path(origin, "a-0", "00000000000000000000.log").read_bytes()
    assert disks.move(target) == 0
    disks.wait_until_at(target)
    assert Path(target, "a-0", "00000000000000000000.log").read_bytes() == before
    disks.append(b"after")
    with disks.connect() as connection:
        end = connection.send(list_offsets("a", LATEST), 7).topics[0].partitions[0]
        found = connection.send(fetch("a", 0), 11).responses[0].partitions[0]
    assert end.offset == 21
    assert found.high_watermark == 21
    assert disks.move(target) == 0  # where it is
    assert disks.move(origin, version=1) == 0
    disks.wait_until_at(origin)
    deadline = time.monotonic() + PATIENCE_S
    while list(Path(target).glob("a-0*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_moved_log_is_there_after_a_crash(disks: TwoDisks) -> None:
    disks.append(b"one", b"two")
    target = disks.elsewhere()
    assert disks.move(target) == 0
    disks.wait_until_at(target)
    disks.append(b"three")
    disks.broker.kill()
    disks.broker.start()
    assert disks.place() == target
    with disks.connect() as connection:
        end = connection.send(list_offsets("a", LATEST), 7).topics[0].partitions[0]
    assert end.offset == 3


def test_what_cannot_be(disks: TwoDisks) -> None:
    assert disks.move("/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert disks.move("relative") == ErrorCode.LOG_DIR_NOT_FOUND
    assert disks.move(disks.first, topic="b") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert disks.move(disks.first, index=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_slow_move_is_seen_can_be_called_off_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    disks = TwoDisks(tmp_path, replica_alter_log_dirs_io_max_bytes_per_second="1000")
    with disks.broker:
        disks.broker.create_topic("a")
        for _ in range(4):
            disks.append(b"x" * 900_000)
        origin, target = disks.place(), disks.elsewhere()
        assert disks.move(target) == 0
        disks.wait_until_on_the_way(origin, target)
        assert disks.move(origin) == 0
        disks.wait_until_at(origin)
        assert disks.move(target) == 0
        disks.wait_until_on_the_way(origin, target)
        disks.broker.kill()
        disks.broker.start()
        disks.wait_until_on_the_way(origin, target)
