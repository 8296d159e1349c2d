"""On a full disk that holds the embedded store, too: the remedies work, and so do a stop and a start."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.store import ANY_VERSION, Create, Delete, Operation, Set, StoreFailed
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.robustness.wire_calls import (
    create_topic,
    create_topic_result,
    fetch,
    produce,
    produce_result,
)
from tests.support.headrace_process import HeadraceProcess
from tests.support.process_memory import MIB
from tests.support.small_volume import fill, small_volume

SOON_S = 30.0
TOPIC_RESOURCE = 2
SETTINGS = {
    "log.segment.bytes": str(MIB),
    "log.retention.check.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "100",
    "auto.create.topics.enable": "false",
}


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    with small_volume(tmp_path / "volume", size_bytes=24 * MIB) as path:
        yield path


@pytest.fixture
def broker(tmp_path: Path, volume: Path) -> Iterator[HeadraceProcess]:
    properties = {**SETTINGS, "log.dirs": str(volume / "data")}
    with HeadraceProcess(tmp_path / "broker", properties=properties) as process:
        yield process


def write(connection: Connection, topic: str) -> int:
    return produce_result(connection, topic, [bytes(100_000)])[0]


def fill_up(connection: Connection, topic: str, volume: Path) -> None:
    """Write until the disk refuses, and leave no byte."""
    while (error := write(connection, topic)) == ErrorCode.NONE:
        pass
    assert error == ErrorCode.KAFKA_STORAGE_ERROR
    fill(volume)
    assert write(connection, topic) == ErrorCode.KAFKA_STORAGE_ERROR


def until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def delete_topic(connection: Connection, topic: str) -> int:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
    return connection.send(request).responses[0].error_code


def lower_retention(connection: Connection, topic: str) -> int:
    config = AlterableConfig(name="retention.bytes", config_operation=0, value=str(MIB))
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config]
    )
    answer = connection.send(IncrementalAlterConfigsRequest(resources=[resource]))
    return answer.responses[0].error_code


def delete_records(connection: Connection, topic: str) -> int:
    partition = DeleteRecordsPartition(partition_index=0, offset=-1)
    asked = DeleteRecordsTopic(name=topic, partitions=[partition])
    answer = connection.send(DeleteRecordsRequest(topics=[asked], timeout_ms=10_000))
    return answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize("remedy", [delete_topic, lower_retention, delete_records])
def test_a_remedy_makes_room(
    broker: HeadraceProcess, volume: Path, remedy: Callable[[Connection, str], int]
) -> None:
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "large")
        create_topic(connection, "small")
        produce(connection, "small", [b"before"])
        fill_up(connection, "large", volume)
        assert remedy(connection, "large") == ErrorCode.NONE
        until(lambda: write(connection, "small") == ErrorCode.NONE)
        assert fetch(connection, "small", 0)[0] == b"before"


def test_a_stop_on_a_full_disk_is_an_ordinary_end(broker: HeadraceProcess, volume: Path) -> None:
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "large")
        fill_up(connection, "large", volume)
    broker.stop()
    assert "Traceback" not in broker.log_tail()
    broker.start()
    with Connection("127.0.0.1", broker.port) as connection:
        assert delete_topic(connection, "large") == ErrorCode.NONE
        (volume / "filler").unlink()
        # The room is there when the files of the deleted topic are removed, which follows the answer.
        until(lambda: create_topic_result(connection, "new") == ErrorCode.NONE)
        until(lambda: write(connection, "new") == ErrorCode.NONE)


# ---- the store alone


def added(number: int) -> list[Operation]:
    """A topic's nodes, roughly."""
    path = f"/topics/{number}"
    return [Create(path, bytes(300)), *(Create(f"{path}/{n}", bytes(100)) for n in range(50))]


def removed(number: int) -> list[Operation]:
    path = f"/topics/{number}"
    return [
        Create(f"/deleted/{number}", bytes(50)),
        *(Delete(f"{path}/{n}", ANY_VERSION) for n in range(50)),
        Delete(path, ANY_VERSION),
    ]


async def add_until_refused(store: EmbeddedStore) -> int:
    for number in range(10_000):
        try:
            await store.multi(added(number))
        except StoreFailed:
            return number
    raise AssertionError("the volume took more than it can hold")


def test_everything_can_be_deleted_from_a_store_on_a_full_disk(tmp_path: Path) -> None:
    async def story(volume: Path) -> None:
        store = EmbeddedStore(volume / "store.db")
        await store.open()
        await store.multi([Create("/topics"), Create("/deleted"), Create("/config", b"")])
        count = await add_until_refused(store)
        assert count > 100
        fill(volume)
        with pytest.raises(StoreFailed):
            await store.multi(added(count))
        for number in range(1000):
            await store.multi([Set("/config", bytes(500 + number % 7), ANY_VERSION)])
        await store.close()
        store = EmbeddedStore(volume / "store.db")
        await store.open()
        for number in range(count):
            await store.multi(removed(number))
        assert await store.children("/topics") == []
        await store.close()

    with small_volume(tmp_path / "volume", size_bytes=16 * MIB) as volume:
        asyncio.run(story(volume))
