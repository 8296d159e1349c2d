"""Context of one event that a group machine handles: time, settings, state, and the outcome collected so far."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from headrace.coordinator.contract import CancelTimer, Outcome, Reply, SetTimer, Token, TxnWriter
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import ShardState
from headrace.coordinator.group.stored_records import GroupLogRecord, GroupRecord, OffsetRecord
from headrace.records.control_batch import TxnMarker


@dataclass(slots=True)
class EventContext:
    """Collects the outcome of one event."""

    now_ms: int
    settings: GroupSettings
    state: ShardState
    records: list[GroupLogRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    timers: list[SetTimer | CancelTimer] = field(default_factory=list)
    atomic: bool = True
    writer: TxnWriter | None = None
    marker: TxnMarker | None = None

    def reply(self, token: Token, response: object) -> None:
        self.replies.append(Reply(token, response))

    def set_timer(self, key: Hashable, after_ms: int) -> None:
        self.timers.append(SetTimer(key, after_ms))

    def cancel_timer(self, key: Hashable) -> None:
        self.timers.append(CancelTimer(key))

    def drop_offset(self, group_id: str, topic: str, partition: int) -> None:
        self.records.append(
            OffsetRecord(group_id=group_id, topic=topic, partition=partition, committed=None)
        )

    def drop_group(self, group_id: str) -> None:
        self.records.append(GroupRecord(group_id=group_id, metadata=None))

    def outcome(self) -> Outcome[GroupLogRecord]:
        return Outcome(
            self.records,
            self.replies,
            self.timers,
            self.atomic,
            writer=self.writer,
            marker=self.marker,
        )
