"""Sectors that cannot be read, under records that a consumer asks for: their directory goes offline, the broker lives on."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.robustness.wire_calls import (
    FETCH_VERSION,
    create_topic,
    fetch,
    fetch_request,
    produce,
    produce_result,
)
from tests.support.bad_disk import BadDisk, bad_disk
from tests.support.headrace_process import HeadraceProcess

MIB = 1024 * 1024
PARTITIONS = 4
RECORDS = 20
SOON_S = 20.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[BadDisk]:
    with bad_disk(tmp_path / "bad") as disk:
        yield disk


@pytest.fixture
def broker(tmp_path: Path, disk: BadDisk) -> Iterator[HeadraceProcess]:
    properties = {"log.dirs": f"{tmp_path / 'good'},{disk.path}", "log.segment.bytes": str(MIB)}
    with HeadraceProcess(tmp_path / "broker", properties=properties) as process:
        yield process


def partitions_in(directory: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("spread-")) for path in directory.glob("spread-*"))


def fetch_error(connection: Connection, partition: int) -> int:
    answer = connection.send(fetch_request("spread", 0, partition=partition), FETCH_VERSION)
    return answer.responses[0].partitions[0].error_code


def lookup_error(connection: Connection, partition: int) -> int:
    ask = ListOffsetsPartition(partition_index=partition, timestamp=1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="spread", partitions=[ask])])
    return connection.send(request, 9).topics[0].partitions[0].error_code


@pytest.mark.parametrize("ask", [fetch_error, lookup_error])
def test_the_other_directory_lives_on(
    broker: HeadraceProcess, disk: BadDisk, tmp_path: Path, ask: Callable[[Connection, int], int]
) -> None:
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "spread", partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            for _ in range(RECORDS):
                produce(connection, "spread", [bytes(100_000)], partition=partition)
        good, bad = partitions_in(tmp_path / "good"), partitions_in(disk.path)
        assert good
        assert bad
        disk.fail(*disk.path.glob("spread-*/*.log"))
        assert ask(connection, bad[0]) == ErrorCode.KAFKA_STORAGE_ERROR
        for partition in bad:
            wait_until_refused(connection, partition)
        for partition in good:
            assert ask(connection, partition) == ErrorCode.NONE
            offset = produce(connection, "spread", [b"after"], partition=partition)
            assert offset == RECORDS
            assert fetch(connection, "spread", offset, partition=partition) == [b"after"]
        create_topic(connection, "new")
        assert produce(connection, "new", [b"x"]) == 0
    assert f"log directory {disk.path} goes offline" in broker.log_tail()


def wait_until_refused(connection: Connection, partition: int) -> None:
    deadline = time.monotonic() + SOON_S
    while True:
        error_code, _ = produce_result(connection, "spread", [b"lost"], partition=partition)
        if error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            return
        assert time.monotonic() < deadline, error_code
        time.sleep(0.05)
