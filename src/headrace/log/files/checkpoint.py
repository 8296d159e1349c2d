"""Small text files beside the logs, in Kafka's formats: written aside, synced, renamed.

A checkpoint is: line 1 the version `0`, line 2 the number of entries, then a line each. Callers that can do
without the file treat one that does not parse as missing, and log its name.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from headrace.errors import CorruptBatch
from headrace.ids import TopicPartition, id_of_text, text_of_id
from headrace.log.files.disk import Disk

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
SEEN_EPOCH_FILE: Final = "seen-leader-epoch-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE: Final = "partition.metadata"


def _encode(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in ("0", str(len(entries)), *entries)).encode()


def _decode(path: str, content: bytes) -> list[str]:
    try:
        version, count, *entries = content.decode().splitlines()
        # A torn last line may still be a valid, smaller number.
        if int(version) != 0 or int(count) != len(entries) or not content.endswith(b"\n"):
            raise CorruptBatch(f"{path}: version {version}, {count} entries, {len(entries)} found")
    except ValueError as error:
        raise CorruptBatch(f"{path}: not a checkpoint ({error})") from error
    return entries


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """A `topic partition offset` checkpoint; empty if the file is missing."""
    content = disk.read_bytes(path)
    if not content:  # Kafka creates the file empty
        return {}
    offsets: dict[TopicPartition, int] = {}
    for line in _decode(path, content):
        try:
            topic, partition, offset = line.split()
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as error:
            raise CorruptBatch(f"{path}: {line!r} is not an entry") from error
    return offsets


def encode_offsets(offsets: dict[TopicPartition, int]) -> bytes:
    """The content of a `topic partition offset` checkpoint."""
    return _encode(f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())


def largest_offsets(*checkpoints: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The largest offset that any of the checkpoints has of each partition."""
    largest: dict[TopicPartition, int] = {}
    for offsets in checkpoints:
        for topic_partition, offset in offsets.items():
            largest[topic_partition] = max(offset, largest.get(topic_partition, 0))
    return largest


def write_offsets(disk: Disk, path: str, offsets: dict[TopicPartition, int]) -> None:
    """Replace a `topic partition offset` checkpoint."""
    disk.replace(path, encode_offsets(offsets))


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    """The `epoch startOffset` lines of a replica's leader-epoch checkpoint; empty if missing."""
    content = disk.read_bytes(path)
    if content is None:
        return []
    try:
        pairs = [line.split() for line in _decode(path, content)]
        return [(int(epoch), int(start_offset)) for epoch, start_offset in pairs]
    except ValueError as error:
        raise CorruptBatch(f"{path}: {error}") from error


def write_epochs(
    disk: Disk, path: str, entries: Iterable[tuple[int, int]], *, durable: bool
) -> None:
    """Replace a leader-epoch checkpoint. Not durable on the hot path: recovery rebuilds it from the batches."""
    disk.replace(path, _encode(f"{epoch} {start}" for epoch, start in entries), durable=durable)


def read_topic_id(disk: Disk, directory: str) -> UUID | None:
    """The topic id a replica directory belongs to, from its `partition.metadata`."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    content = disk.read_bytes(path)
    if content is None:
        return None
    pairs = [line.split(":", 1) for line in content.decode(errors="replace").splitlines()]
    fields = {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise CorruptBatch(f"{path}: not a partition.metadata file")
    try:
        return id_of_text(fields["topic_id"])
    except ValueError as error:
        raise CorruptBatch(f"{path}: {error}") from error


def write_topic_id(disk: Disk, directory: str, topic_id: UUID, *, durable: bool = True) -> None:
    """Tie a replica directory to its topic."""
    content = f"version: 0\ntopic_id: {text_of_id(topic_id)}\n"
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    disk.replace(path, content.encode(), durable=durable)
