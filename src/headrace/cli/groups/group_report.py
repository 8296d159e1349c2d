"""`consumer-groups --describe`: offsets and lag, members or state of groups, as Kafka prints them, or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.cli.shell.command_line import tell
from headrace.cli.shell.output import MISSING, cell, print_json, wants_json, width
from headrace.client.admin.admin import Admin
from headrace.client.admin.group_offsets import CommittedOffset, committed_offsets
from headrace.client.admin.groups import GroupDescription, MemberDescription, describe_group
from headrace.client.admin.partitions import FoundOffset, OffsetSpec, list_offsets
from headrace.ids import TopicPartition

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRow:
    """A partition that a group reads or has read."""

    partition: TopicPartition
    committed: CommittedOffset | None
    log_end_offset: int | None
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed.offset

    def cells(self, group_id: str, *, verbose: bool) -> list[str]:
        committed, member = self.committed, self.member
        epoch = None if committed is None else committed.leader_epoch
        return [
            group_id,
            self.partition.topic,
            str(self.partition.partition),
            *([cell(epoch)] if verbose else []),
            cell(None if committed is None else committed.offset),
            cell(self.log_end_offset),
            cell(self.lag),
            MISSING if member is None else member.member_id,
            MISSING if member is None else member.host,
            MISSING if member is None else member.client_id,
        ]

    def as_json(self) -> dict[str, Any]:
        member = self.member
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "leaderEpoch": None if self.committed is None else self.committed.leader_epoch,
            "currentOffset": None if self.committed is None else self.committed.offset,
            "logEndOffset": self.log_end_offset,
            "lag": self.lag,
            "consumerId": None if member is None else member.member_id,
            "host": None if member is None else member.host,
            "clientId": None if member is None else member.client_id,
        }


def describe(admin: Admin, options: argparse.Namespace, group_ids: Iterable[str]) -> None:
    """Print the view that the options ask for."""
    # All are asked before anything is printed: one that does not exist ends the whole, as in Kafka's tool.
    groups = [describe_group(admin, group_id) for group_id in sorted(set(group_ids))]
    if options.members:
        _describe_members(options, groups)
    elif options.state is not None:
        _describe_states(options, groups)
    else:
        _describe_offsets(options, [(group, offset_rows(admin, group)) for group in groups])


def _remark(group: GroupDescription) -> None:
    if group.state == "Empty":
        tell("", f"Consumer group '{group.group_id}' has no active members.")
    elif group.state in REBALANCING:
        tell("", f"Warning: Consumer group '{group.group_id}' is rebalancing.")


# Offsets


def offset_rows(admin: Admin, group: GroupDescription) -> list[OffsetRow]:
    """What each member reads, the busiest first, then what nobody reads any more."""
    committed = committed_offsets(admin, group.group_id)
    owners: dict[TopicPartition, MemberDescription] = {}
    members = sorted(group.members, key=lambda member: -len(member.assignment))
    for member in members:
        for partition in member.assignment:
            owners[partition] = member
    ends = list_offsets(admin, {*committed, *owners}, OffsetSpec.LATEST)

    def row(partition: TopicPartition, member: MemberDescription | None) -> OffsetRow:
        end = ends.get(partition)
        return OffsetRow(
            partition=partition,
            committed=committed.get(partition),
            log_end_offset=end.offset if isinstance(end, FoundOffset) else None,
            member=member,
        )

    rows = [row(partition, member) for member in members for partition in sorted(member.assignment)]
    return rows + [row(each, None) for each in sorted(committed) if each not in owners]


def _describe_offsets(
    options: argparse.Namespace, groups: Sequence[tuple[GroupDescription, list[OffsetRow]]]
) -> None:
    if wants_json(options):
        print_json(
            [
                {
                    "group": group.group_id,
                    "state": group.state,
                    "partitions": [row.as_json() for row in rows],
                }
                for group, rows in groups
            ]
        )
        return
    for group, rows in groups:
        _remark(group)
        if rows:
            for line in offset_lines(group.group_id, rows, verbose=options.verbose):
                print(f"\n{line}", end="")
            print()


def offset_lines(group_id: str, rows: Sequence[OffsetRow], *, verbose: bool) -> list[str]:
    """The table of a group's offsets, header first."""
    header = ["GROUP", "TOPIC", "PARTITION"]
    header += ["LEADER-EPOCH"] if verbose else []
    header += ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    table = [row.cells(group_id, verbose=verbose) for row in rows]
    widths = [width(15, [row[column] for row in table]) for column in range(len(header))]
    widths[2] = 10
    widths[3 : len(header) - 3] = [15] * (len(header) - 6)
    widths[-1] = 0
    return [
        " ".join(f"{value:<{size}}" for value, size in zip(row, widths, strict=True))
        for row in (header, *table)
    ]


# Members


def _describe_members(options: argparse.Namespace, groups: Iterable[GroupDescription]) -> None:
    if wants_json(options):
        print_json(
            [
                {
                    "group": group.group_id,
                    "state": group.state,
                    "members": [_member_json(member) for member in group.members],
                }
                for group in groups
            ]
        )
        return
    for group in groups:
        _remark(group)
        print()
        for line in member_lines(group, verbose=options.verbose):
            print(line)


def member_lines(group: GroupDescription, *, verbose: bool) -> list[str]:
    """The table of a group's members, header first."""
    members = group.members
    columns: list[tuple[str, int, list[str]]] = [
        ("GROUP", 15, [group.group_id for _ in members]),
        ("CONSUMER-ID", 15, [each.member_id for each in members]),
    ]
    if any(each.instance_id for each in members):
        columns.append(("GROUP-INSTANCE-ID", 17, [each.instance_id or "" for each in members]))
    columns += [
        ("HOST", 15, [each.host for each in members]),
        ("CLIENT-ID", 15, [each.client_id for each in members]),
        ("#PARTITIONS", 15, [str(len(each.assignment)) for each in members]),
    ]
    form = "".join(f"{{:<{width(least, values)}}} " for _, least, values in columns)
    if verbose:
        more = _epoch_columns(group)
        is_migrating = more[-1][0] == "UPGRADED"
        form += " ".join(
            "{}" if is_migrating and column is more[-1] else f"{{:<{width(column[1], column[2])}}}"
            for column in more
        )
        columns += more
    rows = zip(*(values for _, _, values in columns), strict=True)
    return [form.format(*(title for title, _, _ in columns)), *(form.format(*row) for row in rows)]


def _epoch_columns(group: GroupDescription) -> list[tuple[str, int, list[str]]]:
    members = group.members
    target_epoch = cell(group.target_assignment_epoch)
    columns = [
        ("CURRENT-EPOCH", 15, [cell(each.member_epoch) for each in members]),
        ("CURRENT-ASSIGNMENT", 20, [assignment_text(each.assignment) for each in members]),
        ("TARGET-EPOCH", 15, [target_epoch for _ in members]),
        ("TARGET-ASSIGNMENT", 20, [assignment_text(each.target_assignment) for each in members]),
    ]
    if {False, True} <= {each.upgraded for each in members}:
        upgraded = [
            cell(None if each.upgraded is None else str(each.upgraded).lower()) for each in members
        ]
        columns.append(("UPGRADED", 0, upgraded))
    return columns


def assignment_text(partitions: Iterable[TopicPartition] | None) -> str:
    """`topic:0,1,2;topic2:0`."""
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(partitions or ()):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return (
        ";".join(
            sorted(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic.items())
        )
        or MISSING
    )


def _member_json(member: MemberDescription) -> Mapping[str, Any]:
    def plain(partitions: Iterable[TopicPartition] | None) -> list[dict[str, Any]] | None:
        if partitions is None:
            return None
        return [{"topic": each.topic, "partition": each.partition} for each in sorted(partitions)]

    return {
        "consumerId": member.member_id,
        "groupInstanceId": member.instance_id,
        "host": member.host,
        "clientId": member.client_id,
        "currentEpoch": member.member_epoch,
        "assignment": plain(member.assignment),
        "targetAssignment": plain(member.target_assignment),
    }


# State


def _describe_states(options: argparse.Namespace, groups: Iterable[GroupDescription]) -> None:
    if wants_json(options):
        print_json(
            [
                {
                    "group": group.group_id,
                    "type": group.group_type,
                    "coordinator": {
                        "id": group.coordinator.broker_id,
                        "host": group.coordinator.address.host,
                        "port": group.coordinator.address.port,
                    },
                    "assignmentStrategy": group.assignor or None,
                    "state": group.state,
                    "groupEpoch": group.group_epoch,
                    "targetAssignmentEpoch": group.target_assignment_epoch,
                    "members": len(group.members),
                }
                for group in groups
            ]
        )
        return
    for group in groups:
        _remark(group)
        for line in state_lines(group, verbose=options.verbose):
            print(f"\n{line}", end="")
        print()


def state_lines(group: GroupDescription, *, verbose: bool) -> list[str]:
    """The state of a group, header first."""
    coordinator = f"{group.coordinator.address}  ({group.coordinator.broker_id})"
    columns = [
        ("GROUP", group.group_id, width(15, [group.group_id])),
        ("COORDINATOR (ID)", coordinator, width(25, [coordinator])),
        ("ASSIGNMENT-STRATEGY", cell(group.assignor), 20),
        ("STATE", group.state, 20),
    ]
    if verbose:
        columns += [
            ("GROUP-EPOCH", cell(group.group_epoch), 15),
            ("TARGET-ASSIGNMENT-EPOCH", cell(group.target_assignment_epoch), 25),
        ]
    columns.append(("#MEMBERS", str(len(group.members)), 0))
    return [
        " ".join(f"{title:<{size}}" for title, _, size in columns),
        " ".join(f"{value:<{size}}" for _, value, size in columns),
    ]
