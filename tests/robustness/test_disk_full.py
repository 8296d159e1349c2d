"""A full disk refuses writes and nothing else; when there is room again, writes work again, unaided."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.robustness.wire_calls import create_topic, fetch, produce_result
from tests.support.headrace_process import HeadraceProcess
from tests.support.process_memory import MIB
from tests.support.small_volume import fill, small_volume

VALUE_BYTES = 100_000
BALLAST_BYTES = 4 * MIB
SOON_S = 20.0
CHECKPOINT_MS = 200
SETTINGS = {
    "log.segment.bytes": str(MIB),
    "log.flush.offset.checkpoint.interval.ms": str(CHECKPOINT_MS),
    "log.flush.scheduler.interval.ms": str(CHECKPOINT_MS),
    "log.flush.interval.ms": str(CHECKPOINT_MS),
    "replica.high.watermark.checkpoint.interval.ms": str(CHECKPOINT_MS),
}


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    with small_volume(tmp_path / "volume", size_bytes=16 * MIB) as path:
        yield path


@pytest.fixture
def broker(tmp_path: Path, volume: Path) -> Iterator[HeadraceProcess]:
    properties = {**SETTINGS, "log.dirs": str(volume / "data")}
    with HeadraceProcess(tmp_path / "broker", properties=properties) as process:
        yield process


class Writer:
    """Writes numbered records to one partition and remembers which were taken."""

    def __init__(self, port: int) -> None:
        self.connection = Connection("127.0.0.1", port)
        self.taken: list[bytes] = []
        create_topic(self.connection, "filled")

    def write(self) -> int:
        """Try to write one record. Returns the error code."""
        value = b"%d " % len(self.taken) + bytes(VALUE_BYTES)
        error_code, offset = produce_result(self.connection, "filled", [value])
        if error_code == 0:
            assert offset == len(self.taken)
            self.taken.append(value)
        return error_code

    def write_until_refused(self) -> int:
        for _ in range(1000):
            error_code = self.write()
            if error_code:
                return error_code
        pytest.fail("the volume took more than it can hold")

    def check(self, connection: Connection | None = None) -> None:
        """Everything that was taken is there, in order, and nothing else."""
        found: list[bytes | None] = []
        while len(found) < len(self.taken):
            values = fetch(connection or self.connection, "filled", len(found))
            assert values, f"{len(found)} of {len(self.taken)}"
            found += values
        assert found == self.taken


def test_writes_are_refused_reads_go_on_and_room_heals(
    broker: HeadraceProcess, volume: Path
) -> None:
    ballast = volume / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    writer = Writer(broker.port)
    with writer.connection as connection:
        assert ask_coordinator(connection) == ErrorCode.NONE
        assert writer.write_until_refused() == ErrorCode.KAFKA_STORAGE_ERROR
        fill(volume)
        writer.check()
        # While the broker tries, and cannot, to write checkpoints and to flush.
        time.sleep(5 * CHECKPOINT_MS / 1000)
        assert writer.write() == ErrorCode.KAFKA_STORAGE_ERROR
        writer.check()
        assert create(connection, "refused") != ErrorCode.NONE
        assert commit(connection) != ErrorCode.NONE
        ballast.unlink()
        (volume / "filler").unlink()
        wait_until(lambda: writer.write() == ErrorCode.NONE)
        for _ in range(20):
            assert writer.write() == ErrorCode.NONE
        wait_until(lambda: commit(connection) == ErrorCode.NONE)
        assert create(connection, "taken") == ErrorCode.NONE
        writer.check()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_that_ends_on_a_full_disk_comes_back_whole(
    broker: HeadraceProcess, volume: Path, how: str
) -> None:
    ballast = volume / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    writer = Writer(broker.port)
    with writer.connection:
        assert writer.write_until_refused() == ErrorCode.KAFKA_STORAGE_ERROR
        fill(volume)
        broker.stop() if how == "stop" else broker.kill()
    ballast.unlink()
    (volume / "filler").unlink()
    broker.start()
    with Connection("127.0.0.1", broker.port) as connection:
        writer.connection = connection
        writer.check()
        assert writer.write() == ErrorCode.NONE
        writer.check()


def ask_coordinator(connection: Connection) -> int:
    """Makes sure that there is a topic for offsets."""
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
    deadline = time.monotonic() + SOON_S
    while True:
        error_code = connection.send(asked).coordinators[0].error_code
        if error_code == 0 or time.monotonic() > deadline:
            return error_code
        time.sleep(0.05)


def commit(connection: Connection) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="filled", partitions=[partition])
    answer = connection.send(OffsetCommitRequest(group_id="group", topics=[topic]), 8)
    return answer.topics[0].partitions[0].error_code


def create(connection: Connection, name: str) -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    return answer.topics[0].error_code


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
