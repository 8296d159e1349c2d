"""How far a group is behind: committed offsets beside the ends of partitions, and who reads them. Pure, and its questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.client.admin.admin import Admin
from headrace.client.admin.group_offsets import committed_offsets
from headrace.client.admin.groups import GroupDescription, MemberDescription, describe_group
from headrace.client.admin.partitions import (
    READ_COMMITTED,
    FoundOffset,
    OffsetSpec,
    list_offsets_at,
)
from headrace.ids import TopicPartition
from headrace.rest import errors
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused


class PartitionLag(NamedTuple):
    """A partition that a group has committed an offset of; the member is None where nobody reads it."""

    place: TopicPartition
    member: MemberDescription | None
    current_offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        """Records that are not committed; never negative."""
        return max(0, self.end_offset - self.current_offset)


class LagSummary(NamedTuple):
    """The partition with the greatest lag, and the sum."""

    greatest: PartitionLag
    total: int


def find_group(admin: Admin, group_id: str, missing: str) -> GroupDescription:
    """A group. Raises RestError with the text `missing` where there is none."""
    try:
        return describe_group(admin, group_id)
    except Refused as refused:
        if refused.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            raise errors.not_found(missing) from refused
        raise


def find_lags(admin: Admin, group_id: str) -> list[PartitionLag]:
    """The lag of a group by partition. Raises RestError where it has committed nothing."""
    group = find_group(admin, group_id, f"Consumer Group {group_id} could not be found.")
    committed = committed_offsets(admin, group_id)
    if not committed:
        raise errors.not_found("Consumer group offsets could not be found.")
    ends = list_offsets_at(
        admin,
        dict.fromkeys(committed, int(OffsetSpec.LATEST)),
        isolation_level=READ_COMMITTED,
    )
    return lags(
        group,
        {place: each.offset for place, each in committed.items()},
        {place: each.offset for place, each in ends.items() if isinstance(each, FoundOffset)},
    )


def lags(
    group: GroupDescription,
    committed: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[PartitionLag]:
    """The lag by partition, in order; partitions without an end, such as deleted ones, are left out."""
    members = {place: member for member in group.members for place in member.assignment}
    return [
        PartitionLag(place, members.get(place), committed[place], ends[place])
        for place in sorted(committed)
        if place in ends
    ]


def summary(found: list[PartitionLag]) -> LagSummary | None:
    """The greatest lag and the sum; None of nothing."""
    if not found:
        return None
    return LagSummary(max(found, key=lambda each: each.lag), sum(each.lag for each in found))
