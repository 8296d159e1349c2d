"""What does not expire: the offsets and the groups that an open transaction speaks of."""

import pytest

from headrace.coordinator.contract import Loaded, TimerFired
from headrace.coordinator.group.events import ExpiryTimer
from headrace.coordinator.group.machine import GroupMachine
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.stored_records import (
    CommittedOffset,
    GroupLogRecord,
    GroupRecord,
    OffsetRecord,
    PendingOffsetRecord,
    TransactionEndRecord,
)

LONG_AGO_MS = 1_000
NOW_MS = 10**13
OLD = CommittedOffset(3, LONG_AGO_MS)
PLACE = ("shipping", "orders", 0)


def expired(machine: GroupMachine) -> list[GroupLogRecord]:
    """What an expiry run writes."""
    outcome = machine.handle(TimerFired(ExpiryTimer()), NOW_MS)
    for record in outcome.records:
        machine.replay(record)
    machine.check()
    return list(outcome.records)


@pytest.mark.parametrize("is_commit", [False, True])
def test_offsets_and_groups_wait_for_the_end_of_the_transaction(is_commit: bool) -> None:
    machine = GroupMachine(GroupSettings())
    machine.replay(OffsetRecord(*PLACE, OLD))
    machine.replay(PendingOffsetRecord(7, OffsetRecord(*PLACE, CommittedOffset(5, NOW_MS))))
    machine.handle(Loaded(), NOW_MS)
    assert expired(machine) == []
    machine.replay(TransactionEndRecord(7, is_commit))
    gone: list[GroupLogRecord] = [OffsetRecord(*PLACE, None), GroupRecord("shipping", None)]
    assert expired(machine) == ([] if is_commit else gone)


def test_a_group_with_nothing_but_pending_offsets_stays_until_the_end() -> None:
    machine = GroupMachine(GroupSettings())
    machine.replay(PendingOffsetRecord(7, OffsetRecord(*PLACE, OLD)))
    machine.handle(Loaded(), NOW_MS)
    machine.check()
    assert expired(machine) == []
    machine.replay(TransactionEndRecord(7, is_commit=False))
    assert expired(machine) == [GroupRecord("shipping", None)]
    assert machine.state.groups == {}
