"""A member of a classic consumer group with a protocol of its own: join, sync, heartbeat, leave. A rim module.

For programs that share work rather than partitions: the schema registry elects its primary with it. What is assigned
is the program's business: the group's leader calls `assign`, every member gets its part through `on_assigned`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.async_connection import AsyncConnection, connect
from headrace.client.brokers import Address, parse_addresses
from headrace.client.exchange import Disconnected, R, VersionNotOffered
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import Request
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_log = logging.getLogger(__name__)

_RETRY_AFTER_S: Final = 0.2
_CONNECT_S: Final = 5.0
_ANSWER_S: Final = 15.0
_LEAVE_S: Final = 2.0
_REJOIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})
_FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})


class _Again(Exception):
    """The group is moving: look for its coordinator and join again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What the group gave this member."""

    member_id: str
    generation: int
    is_leader: bool
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgram:
    """What a program brings into a group."""

    group_id: str
    protocol_type: str
    protocol_name: str
    metadata: bytes
    # Called at the group's leader with every member's metadata; says what each one gets.
    assign: Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
    on_assigned: Callable[[Membership], None]
    # The member no longer counts as one; it may be given something again later.
    on_lost: Callable[[], None]


class GroupMember:
    """Runs until cancelled; then it leaves the group."""

    def __init__(
        self,
        bootstrap_servers: str,
        program: GroupProgram,
        *,
        client_id: str = "headrace",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 30_000,
        heartbeat_interval_ms: int = 3_000,
    ) -> None:
        self._bootstrap = parse_addresses(bootstrap_servers)
        self._program = program
        self._client_id = client_id
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._heartbeat_interval_s = heartbeat_interval_ms / 1000
        self._member_id = ""
        self._generation = -1
        self._connection: AsyncConnection | None = None
        self._is_member = False

    async def run(self) -> None:
        """Be a member, whatever happens to brokers and connections."""
        try:
            while True:
                try:
                    await self._join_once()
                    await self._stay()
                except (_Again, Disconnected, VersionNotOffered, TimeoutError) as trouble:
                    _log.info("group %s: joining again: %s", self._program.group_id, trouble)
                    await asyncio.sleep(_RETRY_AFTER_S)
        finally:
            self._lose()
            await self._leave()
            await self._disconnect()

    async def _join_once(self) -> None:
        joined = await self._join()
        assignments: Sequence[SyncGroupRequestAssignment] = ()
        if joined.leader == joined.member_id:
            parts = self._program.assign({each.member_id: each.metadata for each in joined.members})
            assignments = [
                SyncGroupRequestAssignment(member_id=member, assignment=part)
                for member, part in parts.items()
            ]
        synced = await self._ask(
            SyncGroupRequest(
                group_id=self._program.group_id,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                protocol_type=self._program.protocol_type,
                protocol_name=self._program.protocol_name,
                assignments=list(assignments),
            ),
            wait_s=self._rebalance_timeout_ms / 1000 + _ANSWER_S,
        )
        self._check(ErrorCode.of(synced.error_code))
        self._generation = joined.generation_id
        self._is_member = True
        self._program.on_assigned(
            Membership(
                member_id=joined.member_id,
                generation=joined.generation_id,
                is_leader=joined.leader == joined.member_id,
                assignment=bytes(synced.assignment),
            )
        )

    async def _join(self) -> JoinGroupResponse:
        program = self._program
        while True:
            joined = await self._ask(
                JoinGroupRequest(
                    group_id=program.group_id,
                    session_timeout_ms=self._session_timeout_ms,
                    rebalance_timeout_ms=self._rebalance_timeout_ms,
                    member_id=self._member_id,
                    protocol_type=program.protocol_type,
                    protocols=[
                        JoinGroupRequestProtocol(
                            name=program.protocol_name, metadata=program.metadata
                        )
                    ],
                ),
                wait_s=self._rebalance_timeout_ms / 1000 + _ANSWER_S,
            )
            error = ErrorCode.of(joined.error_code)
            if error is ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
                continue
            self._check(error)
            self._member_id = joined.member_id
            return joined

    async def _stay(self) -> None:
        """Heartbeat until the group moves."""
        while True:
            await asyncio.sleep(self._heartbeat_interval_s)
            answer = await self._ask(
                HeartbeatRequest(
                    group_id=self._program.group_id,
                    generation_id=self._generation,
                    member_id=self._member_id,
                ),
                wait_s=self._session_timeout_ms / 1000,
            )
            error = ErrorCode.of(answer.error_code)
            if error is ErrorCode.REBALANCE_IN_PROGRESS:
                await self._join_once()
            else:
                self._check(error)

    def _check(self, error: ErrorCode) -> None:
        """Turn an error of the coordinator into what is to be done about it."""
        if error is ErrorCode.NONE:
            return
        if error in _FORGOTTEN:
            self._member_id = ""
            self._lose()
        elif error not in _REJOIN:
            self._drop_connection()
        raise _Again(error.name)

    def _lose(self) -> None:
        if self._is_member:
            self._is_member = False
            self._program.on_lost()

    # ---- the coordinator

    async def _ask(self, request: Request[R], *, wait_s: float) -> R:
        connection = await self._coordinator()
        try:
            async with asyncio.timeout(wait_s):
                return await connection.send(request)
        except (Disconnected, TimeoutError):
            self._drop_connection()
            # Without a coordinator the session may end unnoticed: what hangs on it is given up.
            self._lose()
            raise

    async def _coordinator(self) -> AsyncConnection:
        if self._connection is None or not self._connection.is_open:
            address = await self._find_coordinator()
            self._connection = await self._connect(address)
        return self._connection

    async def _find_coordinator(self) -> Address:
        key = self._program.group_id
        trouble = "no broker answers"
        for address in self._bootstrap:
            try:
                connection = await self._connect(address)
            except (Disconnected, TimeoutError) as refused:
                trouble = str(refused) or f"{address} does not answer"
                continue
            try:
                async with asyncio.timeout(_ANSWER_S):
                    answer = await connection.send(
                        FindCoordinatorRequest(key=key, key_type=0, coordinator_keys=[key])
                    )
            except (Disconnected, TimeoutError) as broken:
                trouble = str(broken)
                continue
            finally:
                await connection.close()
            found = answer.coordinators[0] if answer.coordinators else answer
            error = ErrorCode.of(found.error_code)
            if error is ErrorCode.NONE:
                return Address(found.host, found.port)
            trouble = error.name
        self._lose()
        raise _Again(f"the group's coordinator was not found: {trouble}")

    async def _connect(self, address: Address) -> AsyncConnection:
        async with asyncio.timeout(_CONNECT_S):
            return await connect(address.host, address.port, client_id=self._client_id)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    async def _leave(self) -> None:
        connection = self._connection
        if connection is None or not connection.is_open or not self._member_id:
            return
        try:
            async with asyncio.timeout(_LEAVE_S):
                await connection.send(
                    LeaveGroupRequest(
                        group_id=self._program.group_id,
                        member_id=self._member_id,
                        members=[MemberIdentity(member_id=self._member_id)],
                    )
                )
        except (Disconnected, TimeoutError):
            pass  # the session's end has the same effect, later

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
