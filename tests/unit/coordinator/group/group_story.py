"""Drives a GroupMachine as the runtime does, without loop, clock or log: tests read like stories.

Each record goes through its bytes and back before it is replayed, every invariant is checked after
every event, and a token that is answered twice fails at once.
"""

from collections.abc import Sequence
from struct import pack

from headrace.coordinator.contract import Loaded, SetTimer, StoredRecord, TimerFired, Token
from headrace.coordinator.group import events
from headrace.coordinator.group.machine import GroupMachine
from headrace.coordinator.group.refusals import refusal
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import ClassicGroup
from headrace.coordinator.group.stored_records import (
    GroupLogRecord,
    GroupRecord,
    decode_record,
    encode_record,
)
from headrace.coordinator.timers import Deadlines
from headrace.ids import NO_TOPIC_ID
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import UUID
from headrace.wire.messages.delete_groups import DeletableGroupResult
from headrace.wire.messages.describe_groups import DescribedGroup
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headrace.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from headrace.wire.messages.list_groups import ListedGroup
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
)
from headrace.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

START_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000

Protocols = Sequence[tuple[str, bytes]]


def subscription(*topics: str) -> bytes:
    """A consumer's JoinGroup metadata, version 0."""
    names = b"".join(pack(">h", len(topic)) + topic.encode() for topic in topics)
    return pack(">hi", 0, len(topics)) + names + pack(">i", -1)


RANGE: Protocols = (("range", subscription("orders")),)


class Story:
    """One shard, told event by event."""

    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.settings = settings or GroupSettings(initial_rebalance_delay_ms=DELAY_MS)
        self.machine = GroupMachine(self.settings)
        self.now_ms = START_MS
        self.timers = Deadlines()
        self.answers: dict[Token, object] = {}
        self.log: list[StoredRecord] = []
        self.new_records: list[GroupLogRecord] = []
        self.refuse_appends = False
        self._asked: dict[Token, events.GroupRequestEvent] = {}
        self.load([])

    # -- the machinery ---------------------------------------------------------------------------

    def load(self, log: Sequence[StoredRecord]) -> None:
        """A new leader: nothing is known but the log."""
        self.machine = GroupMachine(self.settings)
        self.timers = Deadlines()
        for key, value in log:
            record = decode_record(key, value)
            if record is not None:
                self.machine.replay(record)
        self.log = list(log)
        self._tell(Loaded())

    def fail_over(self) -> None:
        self.load(self.log)

    def ask(self, event: events.GroupRequestEvent) -> Token:
        self._asked[event.token] = event
        self._tell(event)
        return event.token

    def token(self) -> Token:
        return Token(len(self._asked) + 1)

    def _tell(self, event: events.GroupRequestEvent | TimerFired | Loaded) -> None:
        outcome = self.machine.handle(event, self.now_ms)
        self.new_records = list(outcome.records)
        stored = not (self.refuse_appends and outcome.records)
        if stored:
            for record in outcome.records:
                key, value = encode_record(record)
                self.log.append((key, value))
                assert decode_record(key, value) == record
                self.machine.replay(record)
        for reply in outcome.replies:
            assert reply.token not in self.answers, f"answered twice: {reply}"
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self.answers[reply.token] = (
                reply.response if stored else refusal(self._asked[reply.token], error)
            )
        for timer in outcome.timers:
            if isinstance(timer, SetTimer):
                self.timers.set(timer.key, self.now_ms + timer.after_ms)
            else:
                self.timers.cancel(timer.key)
        self.machine.check()

    def sleep(self, ms: int) -> None:
        """Let time pass; timers fire at their moments."""
        end_ms = self.now_ms + ms
        while (next_ms := self.timers.next_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            key = self.timers.pop_due(self.now_ms)
            assert key is not None
            self._tell(TimerFired(key))
        self.now_ms = end_ms

    def group(self, group_id: str = "g") -> ClassicGroup:
        return self.machine.state.groups[group_id]

    # -- members ---------------------------------------------------------------------------------

    def send_join(
        self,
        member_id: str = "",
        *,
        group_id: str = "g",
        version: int = 9,
        client_id: str = "c",
        instance_id: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        connection_id: int | None = None,
    ) -> Token:
        token = self.token()
        return self.ask(
            events.JoinRequested(
                token=token,
                client=events.Client(id=client_id, host="/127.0.0.1", connection_id=connection_id),
                version=version,
                fresh_uuid=f"uuid{token}",
                request=JoinGroupRequest(
                    group_id=group_id,
                    member_id=member_id,
                    group_instance_id=instance_id,
                    session_timeout_ms=session_ms,
                    rebalance_timeout_ms=rebalance_ms,
                    protocol_type=protocol_type,
                    protocols=[
                        JoinGroupRequestProtocol(name=name, metadata=metadata)
                        for name, metadata in protocols
                    ],
                ),
            )
        )

    def joined(self, token: Token) -> JoinGroupResponse:
        response = self.answers[token]
        assert isinstance(response, JoinGroupResponse)
        return response

    def send_sync(
        self,
        member_id: str,
        generation_id: int,
        *,
        group_id: str = "g",
        version: int = 5,
        assignments: dict[str, bytes] | None = None,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> Token:
        return self.ask(
            events.SyncRequested(
                token=self.token(),
                version=version,
                request=SyncGroupRequest(
                    group_id=group_id,
                    generation_id=generation_id,
                    member_id=member_id,
                    group_instance_id=instance_id,
                    protocol_type=protocol_type,
                    protocol_name=protocol_name,
                    assignments=[
                        SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                        for each, assignment in (assignments or {}).items()
                    ],
                ),
            )
        )

    def synced(self, token: Token) -> SyncGroupResponse:
        response = self.answers[token]
        assert isinstance(response, SyncGroupResponse)
        return response

    def heartbeat(
        self,
        member_id: str,
        generation_id: int,
        *,
        group_id: str = "g",
        instance_id: str | None = None,
    ) -> ErrorCode:
        token = self.ask(
            events.HeartbeatReceived(
                token=self.token(),
                request=HeartbeatRequest(
                    group_id=group_id,
                    generation_id=generation_id,
                    member_id=member_id,
                    group_instance_id=instance_id,
                ),
            )
        )
        response = self.answers[token]
        assert isinstance(response, HeartbeatResponse)
        return ErrorCode(response.error_code)

    def leave(
        self, *members: MemberIdentity, group_id: str = "g", version: int = 5
    ) -> LeaveGroupResponse:
        request = LeaveGroupRequest(group_id=group_id, members=members)
        if version < 3:
            request = LeaveGroupRequest(group_id=group_id, member_id=members[0].member_id)
        token = self.ask(
            events.LeaveRequested(token=self.token(), version=version, request=request)
        )
        response = self.answers[token]
        assert isinstance(response, LeaveGroupResponse)
        return response

    # -- whole rounds ----------------------------------------------------------------------------

    def new_member_id(self, *, group_id: str = "g", client_id: str = "c") -> str:
        """What a client of version 4 or later gets on its first JoinGroup."""
        response = self.joined(self.send_join(group_id=group_id, client_id=client_id))
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return response.member_id

    def stable_group(
        self,
        size: int = 1,
        *,
        group_id: str = "g",
        protocols: Protocols = RANGE,
        instance_ids: Sequence[str | None] = (),
    ) -> list[str]:
        """A group with this many members, synced; the first one leads."""
        tokens = []
        for index in range(size):
            instance_id = instance_ids[index] if index < len(instance_ids) else None
            member_id = "" if instance_id else self.new_member_id(group_id=group_id)
            tokens.append(
                self.send_join(
                    member_id, group_id=group_id, instance_id=instance_id, protocols=protocols
                )
            )
        self.sleep(self.settings.initial_rebalance_delay_ms * (size + 1))
        answers = [self.joined(token) for token in tokens]
        member_ids = [answer.member_id for answer in answers]
        generation_id = answers[0].generation_id
        assert answers[0].leader == member_ids[0]
        shares = {member_id: f"share of {member_id}".encode() for member_id in member_ids}
        syncs = [
            self.send_sync(
                member_id,
                generation_id,
                group_id=group_id,
                protocol_name=protocols[0][0],
                assignments=shares if member_id == member_ids[0] else None,
            )
            for member_id in reversed(member_ids)
        ]
        assert all(self.synced(token).error_code == 0 for token in syncs)
        return member_ids

    # -- offsets ---------------------------------------------------------------------------------

    def commit(
        self,
        offset: int = 1,
        *,
        group_id: str = "g",
        topic: str = "orders",
        topic_id: UUID = NO_TOPIC_ID,
        partition: int = 0,
        member_id: str = "",
        instance_id: str | None = None,
        generation_id: int = -1,
        metadata: str | None = "",
        leader_epoch: int = -1,
        retention_ms: int = -1,
        version: int = 9,
    ) -> ErrorCode:
        token = self.ask(
            events.OffsetsCommitted(
                token=self.token(),
                version=version,
                request=OffsetCommitRequest(
                    group_id=group_id,
                    generation_id_or_member_epoch=generation_id,
                    member_id=member_id,
                    group_instance_id=instance_id,
                    retention_time_ms=retention_ms,
                    topics=[
                        OffsetCommitRequestTopic(
                            name=topic,
                            topic_id=topic_id,
                            partitions=[
                                OffsetCommitRequestPartition(
                                    partition_index=partition,
                                    committed_offset=offset,
                                    committed_leader_epoch=leader_epoch,
                                    committed_metadata=metadata,
                                )
                            ],
                        )
                    ],
                ),
            )
        )
        response = self.answers[token]
        assert isinstance(response, OffsetCommitResponse)
        assert response.topics[0].name == topic
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def fetch(
        self,
        topics: Sequence[OffsetFetchRequestTopics] | None,
        *,
        group_id: str = "g",
        version: int = 9,
    ) -> OffsetFetchResponseGroup:
        token = self.ask(
            events.OffsetsFetched(
                token=self.token(),
                version=version,
                request=OffsetFetchRequestGroup(group_id=group_id, topics=topics),
                require_stable=False,
            )
        )
        response = self.answers[token]
        assert isinstance(response, OffsetFetchResponseGroup)
        return response

    def position(
        self, partition: int = 0, *, topic: str = "orders", group_id: str = "g"
    ) -> OffsetFetchResponsePartitions:
        asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        return self.fetch([asked], group_id=group_id).topics[0].partitions[0]

    def delete_offsets(
        self, topic: str, *partitions: int, group_id: str = "g"
    ) -> OffsetDeleteResponse:
        token = self.ask(
            events.OffsetsDeleted(
                token=self.token(),
                request=OffsetDeleteRequest(
                    group_id=group_id,
                    topics=[
                        OffsetDeleteRequestTopic(
                            name=topic,
                            partitions=[
                                OffsetDeleteRequestPartition(partition_index=partition)
                                for partition in partitions
                            ],
                        )
                    ],
                ),
            )
        )
        response = self.answers[token]
        assert isinstance(response, OffsetDeleteResponse)
        return response

    def delete_topics(self, *topics: events.DeletedTopic) -> None:
        self.ask(events.TopicsDeleted(token=self.token(), topics=topics))

    # -- looking, deleting -----------------------------------------------------------------------

    def listed(self, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        token = self.ask(
            events.GroupsListed(
                token=self.token(), states_filter=frozenset(states), types_filter=frozenset(types)
            )
        )
        response = self.answers[token]
        assert isinstance(response, list)
        return response

    def described(self, group_id: str = "g", *, version: int = 6) -> DescribedGroup:
        token = self.ask(
            events.GroupDescribed(token=self.token(), version=version, group_id=group_id)
        )
        response = self.answers[token]
        assert isinstance(response, DescribedGroup)
        return response

    def delete_group(self, group_id: str = "g") -> ErrorCode:
        token = self.ask(events.GroupDeleted(token=self.token(), group_id=group_id))
        response = self.answers[token]
        assert isinstance(response, DeletableGroupResult)
        return ErrorCode(response.error_code)

    @property
    def group_records(self) -> list[GroupRecord]:
        """What the last event said about groups."""
        return [record for record in self.new_records if isinstance(record, GroupRecord)]
