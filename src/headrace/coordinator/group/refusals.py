"""The form of a refusal, per request: where each answer carries an error that concerns it as a whole. Pure.

Used when a request cannot be decided at all: not the coordinator, still loading, records not stored.
"""

from typing import assert_never

from headrace.coordinator.group import events
from headrace.coordinator.group.offsets import refused_commit, refused_fetch
from headrace.coordinator.group.txn_offsets import refused_txn_commit
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_groups import DeletableGroupResult
from headrace.wire.messages.describe_groups import DescribedGroup
from headrace.wire.messages.heartbeat import HeartbeatResponse
from headrace.wire.messages.join_group import JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupResponse
from headrace.wire.messages.offset_delete import OffsetDeleteResponse
from headrace.wire.messages.sync_group import SyncGroupResponse


def refusal(event: events.GroupRequestEvent, error: ErrorCode) -> object:
    """The answer to this request that says only: no, because of that."""
    match event:
        case events.JoinRequested(request=join):
            return JoinGroupResponse(member_id=join.member_id, error_code=error)
        case events.SyncRequested():
            return SyncGroupResponse(error_code=error)
        case events.HeartbeatReceived():
            # While loading, the member is given the benefit of the doubt: its session starts anew anyway.
            is_loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error)
        case events.LeaveRequested():
            return LeaveGroupResponse(error_code=error)
        case _:
            return _refusal_of_offsets_or_view(event, error)


def _refusal_of_offsets_or_view(
    event: events.OffsetsCommitted
    | events.TxnOffsetsCommitted
    | events.TransactionEnding
    | events.OffsetsFetched
    | events.OffsetsDeleted
    | events.GroupsListed
    | events.GroupDescribed
    | events.GroupDeleted
    | events.TopicsDeleted,
    error: ErrorCode,
) -> object:
    match event:
        case events.OffsetsCommitted(request=commit):
            return refused_commit(commit, error)
        case events.TxnOffsetsCommitted(request=txn_commit):
            return refused_txn_commit(txn_commit, error)
        case events.OffsetsFetched(request=fetch, version=version):
            return refused_fetch(fetch, _known_to_old_consumers(error), version)
        case events.OffsetsDeleted():
            return OffsetDeleteResponse(error_code=error)
        case events.GroupDescribed(group_id=group_id):
            return DescribedGroup(group_id=group_id, error_code=error)
        case events.GroupDeleted(group_id=group_id):
            return DeletableGroupResult(group_id=group_id, error_code=error)
        case events.GroupsListed() | events.TopicsDeleted() | events.TransactionEnding():
            # Parts of a whole: who puts them together decides what the error means.
            return error
    assert_never(event)


def _known_to_old_consumers(error: ErrorCode) -> ErrorCode:
    """Consumers before 3.9 do not expect COORDINATOR_NOT_AVAILABLE here, and would give up."""
    if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return ErrorCode.NOT_COORDINATOR
    return error
