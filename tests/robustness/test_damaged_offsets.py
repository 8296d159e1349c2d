"""One damaged batch in `__consumer_offsets` costs the groups of that partition, and nothing else."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from headrace.client.connection import Connection
from headrace.coordinator.partitioning import coordinator_partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.robustness.wire_calls import create_topic, fetch, produce
from tests.support.headrace_process import HeadraceProcess
from tests.support.server_process import free_port

SHARDS = 4
SOON_S = 20.0
GROUPS = {coordinator_partition(f"group-{n}", SHARDS): f"group-{n}" for n in range(20)}


@pytest.fixture
def http_port() -> int:
    return free_port()


@pytest.fixture
def broker(tmp_path: Path, http_port: int) -> Iterator[HeadraceProcess]:
    properties = {
        "offsets.topic.num.partitions": str(SHARDS),
        "headrace.http.listeners": f"http://127.0.0.1:{http_port}",
    }
    with HeadraceProcess(tmp_path / "broker", properties=properties) as process:
        yield process


def test_a_damaged_batch_costs_its_groups_only(broker: HeadraceProcess, http_port: int) -> None:
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "orders")
        for group in GROUPS.values():
            until(partial(find_coordinator, connection, group), ErrorCode.NONE)
            until(partial(commit, connection, group), ErrorCode.NONE)
    broker.stop()
    damaged = 2
    (path,) = (broker.data_dir / f"__consumer_offsets-{damaged}").glob("*.log")
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)
    broker.start()
    with Connection("127.0.0.1", broker.port) as connection:
        produce(connection, "orders", [b"value"])
        assert fetch(connection, "orders", 0) == [b"value"]
        for shard, group in GROUPS.items():
            if shard != damaged:
                until(partial(committed, connection, group), (ErrorCode.NONE, 7))
        group = GROUPS[damaged]
        until(lambda: commit(connection, group), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        # Consumers before 3.9 do not expect that code in this answer.
        assert committed(connection, group)[0] == ErrorCode.NOT_COORDINATOR
    with urlopen(f"http://127.0.0.1:{http_port}/healthz") as page:
        assert f"__consumer_offsets-{damaged} cannot be loaded" in page.read().decode()
    assert f"__consumer_offsets-{damaged} cannot be loaded" in broker.log_tail()
    # What docs/operating/README.md says: without another replica, the partition is put aside.
    broker.stop()
    path.parent.rename(path.parent.with_name("aside"))
    broker.start()
    with Connection("127.0.0.1", broker.port) as connection:
        until(lambda: committed(connection, group), (ErrorCode.NONE, -1))
        until(lambda: commit(connection, group), ErrorCode.NONE)


def find_coordinator(connection: Connection, group: str) -> int:
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    return connection.send(asked).coordinators[0].error_code


def commit(connection: Connection, group: str) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    answer = connection.send(OffsetCommitRequest(group_id=group, topics=[topic]), 8)
    return answer.topics[0].partitions[0].error_code


def committed(connection: Connection, group: str) -> tuple[int, int]:
    """The error code, and the committed offset; -1 for none."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    (answer,) = connection.send(request, 8).groups
    offsets = [each.committed_offset for topic in answer.topics for each in topic.partitions]
    return answer.error_code, offsets[0] if offsets else -1


def until(ask: Callable[[], object], wanted: object) -> None:
    """Shards load in the background: ask until the answer is there."""
    deadline = time.monotonic() + SOON_S
    while (answer := ask()) != wanted:
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
