"""The replicas of a partition as their files have them, compared batch by batch."""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from headrace.records.batch_view import has_valid_crc, headers_in


class Batch(NamedTuple):
    """A stored batch, with everything that the leader stamped into it."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    content: bytes


def stored_batches(directory: Path) -> list[Batch]:
    """The batches of one replica, segment after segment."""
    batches = []
    for path in sorted(directory.glob("*.log")):
        content = path.read_bytes()
        for position, header in headers_in(content):
            batch = content[position : position + header.size]
            assert has_valid_crc(batch), f"{path}: the batch at {header.base_offset} is damaged"
            batches.append(
                Batch(header.base_offset, header.next_offset, header.leader_epoch, batch)
            )
    return batches


def differences(replicas: dict[str, Path], high_watermark: int) -> list[str]:
    """Where replicas differ below the high watermark, or do not reach it, or are out of order themselves."""
    found = []
    committed: dict[str, list[Batch]] = {}
    for name, directory in replicas.items():
        batches = stored_batches(directory)
        committed[name] = [batch for batch in batches if batch.base_offset < high_watermark]
        end_offset = committed[name][-1].next_offset if committed[name] else 0
        if end_offset < high_watermark:
            found.append(f"{name} ends at {end_offset}, before {high_watermark}")
        for before, after in pairwise(batches):
            if after.base_offset < before.next_offset or after.leader_epoch < before.leader_epoch:
                found.append(f"{name}: {before[:3]} is followed by {after[:3]}")
    first, *others = committed
    for other in others:
        for ours, theirs in zip(committed[first], committed[other], strict=False):
            if ours != theirs:
                found.append(f"{first} has {ours[:3]}, {other} has {theirs[:3]}")
                break
    return found
