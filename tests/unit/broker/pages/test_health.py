"""What /healthz says is wrong while the broker serves."""

import pytest

from headrace.broker.cluster.cluster_counts import ClusterCounts
from headrace.broker.pages.health import full_disk_problems, store_problems
from headrace.coordination.store import SessionState
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.refusal import Refusal
from tests.support.log_samples import make_batch
from tests.unit.broker.pages.metrics_world import World

NOW_MS = 1_700_000_000_000
NOW = "2023-11-14T22:13:20+00:00"


def test_a_store_that_answers_is_no_problem() -> None:
    counts = ClusterCounts()
    assert list(store_problems(counts)) == []
    counts.note_session(SessionState.SUSPENDED, NOW_MS)
    counts.note_session(SessionState.CONNECTED, NOW_MS + 1)
    assert list(store_problems(counts)) == []


@pytest.mark.parametrize(
    ("states", "writes"),
    [
        ([SessionState.SUSPENDED], "take writes until"),
        ([SessionState.SUSPENDED, SessionState.OVERDUE], "take no writes"),
        ([SessionState.SUSPENDED, SessionState.OVERDUE, SessionState.LOST], "take no writes"),
    ],
)
def test_a_store_that_does_not_answer(states: list[SessionState], writes: str) -> None:
    counts = ClusterCounts()
    for later_ms, state in enumerate(states):
        counts.note_session(state, NOW_MS + 5_000 * later_ms)
    (problem,) = store_problems(counts)
    assert f"has not answered since {NOW}" in problem
    assert writes in problem


def test_a_controller_without_the_store_is_not_active() -> None:
    world = World()
    name = "kafka_controller_kafkacontroller_activecontrollercount"
    assert world.read().value(name) == 1
    world.sources.counts.note_session(SessionState.SUSPENDED, NOW_MS)
    assert world.read().value(name) == 0


def test_a_full_disk_is_named_until_there_is_room() -> None:
    world = World()
    disk = world.log_dirs.disk
    assert isinstance(disk, MemoryDisk)
    partition = world.host("payments", 3, records=1)
    disk.capacity_bytes = disk.used_bytes
    for later_ms in (0, 7_000):
        refused = partition.append([bytearray(make_batch())], acks=1, now_ms=NOW_MS + later_ms)
        assert isinstance(refused, Refusal)
    (problem,) = full_disk_problems(world.log_dirs, world.partitions)
    assert f"log directory /data is full since {NOW}: appends to payments-3 were refused" in problem
    assert "0 bytes are free now" in problem
    disk.capacity_bytes = None
    partition.append([bytearray(make_batch())], acks=1, now_ms=NOW_MS)
    assert list(full_disk_problems(world.log_dirs, world.partitions)) == []


def test_a_few_of_many_partitions_are_named() -> None:
    world = World()
    disk = world.log_dirs.disk
    assert isinstance(disk, MemoryDisk)
    partitions = [world.host("payments", index, records=1) for index in range(8)]
    disk.capacity_bytes = disk.used_bytes
    for partition in partitions:
        partition.append([bytearray(make_batch())], acks=1, now_ms=NOW_MS)
    (problem,) = full_disk_problems(world.log_dirs, world.partitions)
    assert "payments-4 and 3 more were refused" in problem
