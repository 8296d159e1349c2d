from uuid import UUID

import pytest

from headrace.errors import CorruptBatch
from headrace.ids import TopicPartition
from headrace.log.files.checkpoint import (
    read_epochs,
    read_offsets,
    read_topic_id,
    write_epochs,
    write_offsets,
    write_topic_id,
)
from headrace.testing.memory_disk import MemoryDisk

PATH = "/d/checkpoint"
TOPIC_ID = UUID("5c6d7e8f-0011-2233-4455-66778899aabb")


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/d")
    return disk


def test_offsets_are_written_as_kafka_writes_them(disk: MemoryDisk) -> None:
    offsets = {TopicPartition("a", 0): 5, TopicPartition("b.c-d", 12): 2**40}
    write_offsets(disk, PATH, offsets)
    assert disk.read_bytes(PATH) == b"0\n2\na 0 5\nb.c-d 12 1099511627776\n"
    assert read_offsets(disk, PATH) == offsets


def test_epochs_are_written_as_kafka_writes_them(disk: MemoryDisk) -> None:
    write_epochs(disk, PATH, [(0, 0), (3, 100)], durable=True)
    assert disk.read_bytes(PATH) == b"0\n2\n0 0\n3 100\n"
    assert read_epochs(disk, PATH) == [(0, 0), (3, 100)]


def test_a_missing_or_empty_checkpoint_says_nothing(disk: MemoryDisk) -> None:
    assert read_offsets(disk, PATH) == {}
    assert read_epochs(disk, PATH) == []
    write_offsets(disk, PATH, {})
    assert read_offsets(disk, PATH) == {}
    disk.replace(PATH, b"")
    assert read_offsets(disk, PATH) == {}, "as Kafka creates it"
    with pytest.raises(CorruptBatch):
        read_epochs(disk, PATH)


@pytest.mark.parametrize(
    "content",
    [
        b"0",
        b"1\n0\n",
        b"0\n2\na 0 5\n",
        b"0\n1\na 0 5\nb 0 5\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 5",
        b"0\n1\na zero 5\n",
        b"0\nmany\na 0 5\n",
        b"\xff\xfe",
    ],
)
def test_a_damaged_checkpoint_is_corrupt(disk: MemoryDisk, content: bytes) -> None:
    disk.replace(PATH, content)
    with pytest.raises(CorruptBatch):
        read_offsets(disk, PATH)
    with pytest.raises(CorruptBatch):
        read_epochs(disk, PATH)


def test_a_checkpoint_cut_anywhere_is_corrupt_and_never_a_smaller_number(disk: MemoryDisk) -> None:
    content = b"0\n2\n0 0\n3 12345\n"
    for size in range(len(content)):
        disk.replace(PATH, content[:size])
        with pytest.raises(CorruptBatch):
            read_epochs(disk, PATH)


def test_topic_ids(disk: MemoryDisk) -> None:
    assert read_topic_id(disk, "/d") is None
    write_topic_id(disk, "/d", TOPIC_ID)
    content = disk.read_bytes("/d/partition.metadata")
    assert content == b"version: 0\ntopic_id: XG1-jwARIjNEVWZ3iJmquw\n"
    assert read_topic_id(disk, "/d") == TOPIC_ID


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 1\ntopic_id: x\n",
        b"version: 0\n",
        b"version: 0\ntopic_id: short\n",
        b"\xff",
    ],
)
def test_other_partition_metadata_is_corrupt(disk: MemoryDisk, content: bytes) -> None:
    disk.replace("/d/partition.metadata", content)
    with pytest.raises(CorruptBatch):
        read_topic_id(disk, "/d")
