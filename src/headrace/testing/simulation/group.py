"""Members of a consumer group of a simulated cluster, and what the group promises.

A member joins with the client that the project's own programs use, takes what the group's leader assigns to it, and commits
offsets for it that only grow. No partition has two owners in a generation, and an offset that was committed is never followed
by a smaller one, whoever coordinates the group.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from headrace.client.group_member import GroupMember, GroupProgram, Membership
from headrace.ids import TopicPartition
from headrace.testing.simulation.story import Violation
from headrace.testing.simulation.wire_client import (
    ClientAround,
    Unanswered,
    WireClient,
    bootstrap_servers,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

GROUP: Final = "simulated"
OFFSETS_TOPIC: Final = "__consumer_offsets"
_COMMIT_VERSION: Final = 8
_FETCH_VERSION: Final = 8
_PAUSE_S: Final = 0.5
_SESSION_MS: Final = 3_000
_REBALANCE_MS: Final = 2_000
_HEARTBEAT_MS: Final = 400
_LOST: Final = frozenset(
    (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    )
)


class GroupTruth:
    """What is known to no coordinator: who owns what in which generation, and which commits were acknowledged."""

    def __init__(self) -> None:
        self._owners: dict[tuple[int, TopicPartition], str] = {}
        self.committed: dict[TopicPartition, int] = {}

    def assigned(self, generation: int, member_id: str, partitions: list[TopicPartition]) -> None:
        """A member was given partitions."""
        for where in partitions:
            owner = self._owners.setdefault((generation, where), member_id)
            if owner != member_id:
                raise Violation(
                    f"one owner: {where} belongs to {owner} and {member_id} in generation {generation}"
                )

    def acknowledged(self, where: TopicPartition, offset: int) -> None:
        """A commit was acknowledged."""
        self.committed[where] = max(offset, self.committed.get(where, -1))

    def check_fetched(self, where: TopicPartition, offset: int, known: int) -> None:
        """What the coordinator says is committed, asked for when `known` was acknowledged."""
        if offset < known:
            raise Violation(
                f"committed offsets never go back: {where}: {offset}, but {known} was acknowledged"
            )


class SimulatedMember:
    """One member. It may be killed with its process, and then another comes in its place."""

    def __init__(
        self, around: ClientAround, number: int, truth: GroupTruth, partitions: list[TopicPartition]
    ) -> None:
        self._around = around
        self._truth = truth
        self._partitions = partitions
        self._client = WireClient(around, f"member-{number}")
        self._working: asyncio.Task[None] | None = None
        self.commits = 0

    @property
    def name(self) -> str:
        """As the story calls it."""
        return self._client.name

    async def run(self) -> None:
        """Be a member until the run is over."""
        program = GroupProgram(
            group_id=GROUP,
            protocol_type="consumer",
            protocol_name="range",
            metadata=b"",
            assign=self._assign,
            on_assigned=self._assigned,
            on_lost=self._lost,
        )
        member = GroupMember(
            bootstrap_servers(self._around.broker_ids),
            program,
            client_id=self.name,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            heartbeat_interval_ms=_HEARTBEAT_MS,
        )
        running = asyncio.create_task(member.run())
        while not self._around.is_over and not running.done():
            await self._client.pause(_PAUSE_S)
        running.cancel()
        await asyncio.wait([running])
        self._lost()
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error
        self._client.close()

    def _assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        names = sorted(members)
        return {
            name: msgspec.json.encode(
                [
                    list(where)
                    for place, where in enumerate(self._partitions)
                    if names[place % len(names)] == name
                ]
            )
            for name in names
        }

    def _assigned(self, membership: Membership) -> None:
        self._lost()
        decoded = msgspec.json.decode(membership.assignment or b"[]")
        partitions = [TopicPartition(*each) for each in decoded]
        self._around.story.tell(
            f"{self.name} owns {', '.join(map(str, partitions)) or 'nothing'} in generation "
            f"{membership.generation}"
        )
        self._truth.assigned(membership.generation, membership.member_id, partitions)
        self._working = asyncio.create_task(self._work(membership, partitions))

    def _lost(self) -> None:
        if self._working is not None:
            self._working.cancel()
            self._working = None

    async def _work(self, membership: Membership, partitions: list[TopicPartition]) -> None:
        while partitions:
            where = self._client.chance.choice(partitions)
            try:
                coordinator = -1 if self._around.is_resting else await self._coordinator()
                if coordinator >= 0 and not await self._commit_next(coordinator, membership, where):
                    return
            except Unanswered:
                pass
            except Violation as violation:
                self._around.fail(violation)
            await self._client.pause(_PAUSE_S)

    async def _coordinator(self) -> int:
        request = FindCoordinatorRequest(key=GROUP, key_type=0, coordinator_keys=[GROUP])
        answer = await self._client.call_any(request, 4)
        found = answer.coordinators[0]
        return -1 if found.error_code else found.node_id

    async def _commit_next(
        self, coordinator: int, membership: Membership, where: TopicPartition
    ) -> bool:
        """Read what is committed, and commit more. Returns whether the membership lasts."""
        committed = await self._fetch(coordinator, where)
        if committed is None:
            return True
        offset = committed + self._client.chance.randint(1, 5)
        partition = OffsetCommitRequestPartition(
            partition_index=where.partition, committed_offset=offset
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=membership.generation,
            member_id=membership.member_id,
            topics=[OffsetCommitRequestTopic(name=where.topic, partitions=[partition])],
        )
        answer = await self._client.call(coordinator, request, _COMMIT_VERSION)
        error = ErrorCode.of(answer.topics[0].partitions[0].error_code)
        if error is ErrorCode.NONE:
            self._truth.acknowledged(where, offset)
            self.commits += 1
        elif not error.retriable and error not in _LOST:
            raise Violation(f"no unexpected error: {self.name} commits, and is told {error.name}")
        return error not in _LOST

    async def _fetch(self, coordinator: int, where: TopicPartition) -> int | None:
        known = self._truth.committed.get(where, -1)
        coordinates = self._coordinates(coordinator)
        topic = OffsetFetchRequestTopics(name=where.topic, partition_indexes=[where.partition])
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        answer = await self._client.call(coordinator, request, _FETCH_VERSION)
        found = answer.groups[0]
        if found.error_code:
            return None
        partition = found.topics[0].partitions[0]
        if partition.error_code:
            return None
        offset = max(partition.committed_offset, -1)
        # One that was replaced and does not know it yet may tell what was true before, as in Kafka.
        if coordinates is not None and coordinates == self._coordinates(coordinator):
            self._truth.check_fetched(where, offset, known)
        return offset

    def _coordinates(self, broker_id: int) -> int | None:
        """The leader epoch in which a broker coordinates the group; None if it does not."""
        truth = self._around.invariants.truth_of(OFFSETS_TOPIC, 0)
        if truth is None or truth.stored is None or truth.stored.leader != broker_id:
            return None
        if truth.unclean_epoch >= 0:
            return None
        return truth.stored.leader_epoch
