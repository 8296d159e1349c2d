"""Members of a group with a protocol of its own: who leads it assigns, everybody is told, a member that leaves is replaced."""

import asyncio
import uuid
from collections.abc import Mapping

from headrace.client.group_member import GroupMember, GroupProgram, Membership
from tests.support.headrace_process import HeadraceProcess

PATIENCE_S = 60


class Part:
    """One member, and what it was told."""

    def __init__(self, brokers: str, group: str, name: str) -> None:
        self.told: list[Membership] = []
        self.losses = 0
        self.changed = asyncio.Event()
        program = GroupProgram(
            group_id=group,
            protocol_type="test",
            protocol_name="v0",
            metadata=name.encode(),
            assign=_assign,
            on_assigned=self._assigned,
            on_lost=self._lost,
        )
        self._member = GroupMember(
            brokers, program, session_timeout_ms=6_000, heartbeat_interval_ms=500
        )
        self.task = asyncio.create_task(self._member.run())

    def _assigned(self, membership: Membership) -> None:
        self.told.append(membership)
        self.changed.set()

    def _lost(self) -> None:
        self.losses += 1
        self.changed.set()

    async def await_assignment(self, assignment: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.told or self.told[-1].assignment != assignment:
                self.changed.clear()
                await self.changed.wait()

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def _assign(members: Mapping[str, bytes]) -> Mapping[str, bytes]:
    return dict.fromkeys(members, b",".join(sorted(members.values())))


def test_members_come_and_go(broker: HeadraceProcess) -> None:
    async def play() -> None:
        brokers, group = f"127.0.0.1:{broker.port}", f"members-{uuid.uuid4()}"
        first = Part(brokers, group, "a")
        await first.await_assignment(b"a")
        assert first.told[-1].is_leader
        second = Part(brokers, group, "b")
        await asyncio.gather(first.await_assignment(b"a,b"), second.await_assignment(b"a,b"))
        assert [each.is_leader for each in second.told] == [False]
        assert first.told[-1].generation == second.told[-1].generation
        await first.leave()
        assert first.losses == 1
        await second.await_assignment(b"b")
        assert [each.is_leader for each in second.told] == [False, True]
        await second.leave()

    asyncio.run(play())
