"""Group coordinator of one broker: what the broker's APIs call, each request as an event for the shard that owns its group.

Owns the differences between request versions that are only about form. Requests arrive authorised, with topics resolved
(name and id) and known to exist; answers carry no throttle time. Shards and leadership are left to the `CoordinatorRuntime`.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar
from uuid import UUID

from headrace.coordinator.contract import Token
from headrace.coordinator.coordinator_type import CoordinatorType
from headrace.coordinator.group import events
from headrace.coordinator.group.events import Client, DeletedTopic, GroupRequestEvent
from headrace.coordinator.group.machine import GroupMachine
from headrace.coordinator.group.refusals import refusal
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import GroupState
from headrace.coordinator.group.stored_records import (
    CommittedOffset,
    GroupLogRecord,
    decode_record,
    encode_record,
    in_transaction,
    marker_record,
)
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.ids import NO_TOPIC_ID
from headrace.internal_topics import CONSUMER_OFFSETS
from headrace.log.producers.producer_state import Verification
from headrace.records.control_batch import TxnMarker
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from headrace.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from headrace.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from headrace.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

_FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL = 7
_FIRST_FETCH_VERSION_WITH_GROUPS = 8

GroupRuntime = CoordinatorRuntime[GroupRequestEvent, GroupLogRecord]
ResponseT = TypeVar("ResponseT")


def group_coordinator(
    settings: GroupSettings,
) -> CoordinatorType[GroupRequestEvent, GroupLogRecord]:
    """The group coordinator as a kind of coordinator."""
    return CoordinatorType(
        topic=CONSUMER_OFFSETS,
        keys="groups",
        make_machine=lambda: GroupMachine(settings),
        encode=encode_record,
        decode=decode_record,
        refuse=refusal,
        in_transaction=in_transaction,
        marker_record=marker_record,
        commit_timeout_ms=settings.offsets_commit_timeout_ms,
    )


class Groups:
    """The group coordinator of one broker. One event loop owns it."""

    def __init__(self, runtime: GroupRuntime, *, new_uuid: Callable[[], str]) -> None:
        self._runtime = runtime
        self._new_uuid = new_uuid

    # -- members ---------------------------------------------------------------------------------

    async def join(
        self, client: Client, version: int, request: JoinGroupRequest
    ) -> JoinGroupResponse:
        """JoinGroup. Waits for the round to end."""
        response = await self._ask(
            request.group_id,
            lambda token: events.JoinRequested(
                token=token,
                client=client,
                version=version,
                fresh_uuid=self._new_uuid(),
                request=request,
            ),
            JoinGroupResponse,
        )
        if response.error_code:
            response.protocol_name = None
        if response.protocol_name is None and version < _FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL:
            response.protocol_name = ""
        return response

    async def sync(self, version: int, request: SyncGroupRequest) -> SyncGroupResponse:
        """SyncGroup. Waits for the leader's assignment."""
        return await self._ask(
            request.group_id,
            lambda token: events.SyncRequested(token=token, version=version, request=request),
            SyncGroupResponse,
        )

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Heartbeat."""
        return await self._ask(
            request.group_id,
            lambda token: events.HeartbeatReceived(token=token, request=request),
            HeartbeatResponse,
        )

    async def leave(self, version: int, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """LeaveGroup."""
        return await self._ask(
            request.group_id,
            lambda token: events.LeaveRequested(token=token, version=version, request=request),
            LeaveGroupResponse,
        )

    # -- offsets ---------------------------------------------------------------------------------

    async def commit_offsets(
        self, version: int, request: OffsetCommitRequest
    ) -> OffsetCommitResponse:
        """OffsetCommit. Every topic of the request has its name and its id."""
        return await self._ask(
            request.group_id,
            lambda token: events.OffsetsCommitted(token=token, version=version, request=request),
            OffsetCommitResponse,
        )

    async def commit_txn_offsets(
        self,
        version: int,
        request: TxnOffsetCommitRequest,
        topic_ids: Mapping[str, UUID],
        verified: Verification | None,
    ) -> TxnOffsetCommitResponse:
        """TxnOffsetCommit. `topic_ids` has every topic of the request; `verified`: see `TxnWriter`."""
        return await self._ask(
            request.group_id,
            lambda token: events.TxnOffsetsCommitted(
                token=token,
                version=version,
                request=request,
                topic_ids=topic_ids,
                verified=verified,
            ),
            TxnOffsetCommitResponse,
        )

    def end_transaction(self, partition: int, marker: TxnMarker) -> Awaitable[object]:
        """End a transaction in a partition of `__consumer_offsets`; an error code, NONE once the marker is committed."""
        return self._runtime.ask_partition(
            partition, lambda token: events.TransactionEnding(token=token, marker=marker)
        )

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that holds a group."""
        return self._runtime.partition_for(group_id)

    async def fetch_offsets(
        self,
        version: int,
        request: OffsetFetchRequest,
        topic_id_of: Callable[[str], UUID] = lambda _: NO_TOPIC_ID,
    ) -> OffsetFetchResponse:
        """OffsetFetch, in the form of its version: one group at the top level, or several.

        `topic_id_of` tells which topic has a name now: offsets of an earlier one are not its own.
        """
        if version >= _FIRST_FETCH_VERSION_WITH_GROUPS:
            asked = request.groups
        else:
            asked = (_top_level_group(request),)
        groups = []
        for group in asked:
            event_for = partial(
                events.OffsetsFetched,
                version=version,
                request=group,
                require_stable=request.require_stable,
                topic_id_of=topic_id_of,
            )
            groups.append(await self._ask(group.group_id, event_for, OffsetFetchResponseGroup))
        if version >= _FIRST_FETCH_VERSION_WITH_GROUPS:
            return OffsetFetchResponse(groups=groups)
        return _top_level_response(groups[0])

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """OffsetDelete."""
        return await self._ask(
            request.group_id,
            lambda token: events.OffsetsDeleted(token=token, request=request),
            OffsetDeleteResponse,
        )

    async def topics_deleted(self, topics: Iterable[DeletedTopic]) -> None:
        """The cluster deleted topics: drop their offsets on every shard led here, once it is loaded."""
        gone = tuple(topics)
        await self._runtime.loaded()
        answers = self._runtime.ask_all(
            lambda token: events.TopicsDeleted(token=token, topics=gone)
        )
        for answer in answers:
            await answer

    # -- looking, deleting -----------------------------------------------------------------------

    async def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """ListGroups: the groups coordinated by this broker."""
        answers = self._runtime.ask_all(
            lambda token: events.GroupsListed(
                token=token,
                states_filter=frozenset(request.states_filter),
                types_filter=frozenset(request.types_filter),
            )
        )
        listed = []
        for answer in answers:
            part = await answer
            if isinstance(part, ErrorCode):
                if part is not ErrorCode.NOT_COORDINATOR:
                    return ListGroupsResponse(error_code=part)
            else:
                listed += _expect(part, list)
        return ListGroupsResponse(groups=listed)

    async def describe_groups(
        self, version: int, request: DescribeGroupsRequest
    ) -> DescribeGroupsResponse:
        """DescribeGroups, without authorized operations."""
        return DescribeGroupsResponse(
            groups=[await self._describe_group(version, group_id) for group_id in request.groups]
        )

    async def _describe_group(self, version: int, group_id: str) -> DescribedGroup:
        return await self._ask(
            group_id,
            lambda token: events.GroupDescribed(token=token, version=version, group_id=group_id),
            DescribedGroup,
        )

    async def delete_groups(self, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        """DeleteGroups; a name that is given twice is answered once."""
        group_ids = dict.fromkeys(request.groups_names)
        return DeleteGroupsResponse(
            results=[await self._delete_group(group_id) for group_id in group_ids]
        )

    async def _delete_group(self, group_id: str) -> DeletableGroupResult:
        return await self._ask(
            group_id,
            lambda token: events.GroupDeleted(token=token, group_id=group_id),
            DeletableGroupResult,
        )

    # -- what can be counted ---------------------------------------------------------------------

    @property
    def groups_by_state(self) -> dict[GroupState, int]:
        """How many groups are coordinated here, per state."""
        counts: Counter[GroupState] = Counter(dict.fromkeys(GroupState, 0))
        for machine in self._machines():
            counts.update(machine.groups_by_state)
        return dict(counts)

    def progress(self) -> Iterator[tuple[str, int, Mapping[str, Mapping[int, CommittedOffset]]]]:
        """(group id, number of members, committed offsets by topic and partition), for metrics."""
        for machine in self._machines():
            for group_id, group in machine.state.groups.items():
                yield group_id, len(group.members), machine.state.hard.offsets.get(group_id, {})

    @property
    def offset_count(self) -> int:
        """How many committed offsets are held here."""
        return sum(machine.offset_count for machine in self._machines())

    # -- to the shard ----------------------------------------------------------------------------

    def _machines(self) -> Iterator[GroupMachine]:
        for machine in self._runtime.machines():
            assert isinstance(machine, GroupMachine)
            yield machine

    async def _ask(
        self,
        group_id: str,
        event_for: Callable[[Token], GroupRequestEvent],
        response_type: type[ResponseT],
    ) -> ResponseT:
        return _expect(await self._runtime.ask(group_id, event_for), response_type)


def _expect(response: object, response_type: type[ResponseT]) -> ResponseT:
    assert isinstance(response, response_type), response
    return response


def _top_level_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ],
    )


def _top_level_response(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
