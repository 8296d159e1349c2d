"""How a simulated broker follows others, and answers those that follow it.

As `replication.fetch_loop` and `broker.apis.fetch` do, without sockets: one request at a time to each leader, parked there until
there is something new. What is asked, remembered and told is decided by the real sessions on both sides, and what an
answer means by the real `replication.following`.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.fetching.fetch_sessions import FetchSession, SessionPartitionKey
from headrace.errors import DiskFailed, DiskFull, LogClosed
from headrace.ids import TopicPartition
from headrace.replication.fetch_session import FollowerSession
from headrace.replication.following import FetchOutcome, counts, is_taken_whole, take, take_start
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.testing.virtual_network import Reply
from headrace.wire.error_code import ErrorCode
from headrace.wire.fetch_response_codec import FetchDetails, FetchedPartition
from headrace.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from headrace.wire.refusal import Refusal

if TYPE_CHECKING:
    from headrace.testing.simulation.broker import SimulatedBroker

_MAX_WAIT_MS: Final = 150
_BACKOFF_MS: Final = 50
_LOOK_AROUND_MS: Final = 500
_MAX_BYTES: Final = 300  # a few batches at a time


class SimulatedFollowers:
    """What one broker follows: `broker.replicas.replica_hosting.ReplicaFetchers`."""

    def __init__(self, broker: "SimulatedBroker") -> None:
        self._broker = broker
        self._sessions: dict[int, FollowerSession] = {}  # by leader
        self._leaders: dict[Partition, int] = {}
        self._paused: dict[Partition, int] = {}  # → not before (ms)

    def follow(
        self,
        partition: Partition,
        leader_id: int,
        on_disk_failed: Callable[[Partition, DiskFailed], None],
    ) -> None:
        """Follow a partition at its leader; -1 is nobody."""
        self.leave(partition)
        if leader_id < 0:
            return
        if leader_id not in self._sessions:
            self._sessions[leader_id] = FollowerSession(_MAX_BYTES)
            self._broker.run(self._fetch_from(leader_id))
        self._leaders[partition] = leader_id
        self._sessions[leader_id].want(partition)

    def leave(self, partition: Partition) -> None:
        """No longer follow it."""
        self._paused.pop(partition, None)
        leader_id = self._leaders.pop(partition, None)
        if leader_id is not None:
            self._sessions[leader_id].leave(partition)

    async def _fetch_from(self, leader_id: int) -> None:
        broker, session = self._broker, self._sessions[leader_id]
        looked_ms = 0
        while True:
            now_ms = broker.around.clock.now_ms
            self._end_pauses(now_ms)
            if not session or broker.lags_until_ms > now_ms:
                await broker.sleep(_BACKOFF_MS)
                continue
            if now_ms - looked_ms >= _LOOK_AROUND_MS:
                looked_ms = now_ms
                session.mark_all_changed()
            request = _request(broker, session)
            response = await broker.call(leader_id, partial(answer_fetch, request))
            if not isinstance(response, FetchResponse):
                session.start_over()
                await broker.sleep(_BACKOFF_MS)
            elif session.answered(response):
                await self._take_all(leader_id, response)

    def _end_pauses(self, now_ms: int) -> None:
        for partition, not_before in list(self._paused.items()):
            if not_before <= now_ms:
                del self._paused[partition]
                self._sessions[self._leaders[partition]].want(partition)

    async def _take_all(self, leader_id: int, response: FetchResponse) -> None:
        session = self._sessions[leader_id]
        for topic in response.responses:
            for answer in topic.partitions:
                found = session.asked(topic.topic_id, answer.partition_index)
                if found is None or self._leaders.get(found[0]) != leader_id:
                    continue
                if not is_taken_whole(found[0], answer) or not counts(*found):
                    session.start_over()
                if counts(*found):
                    session.mark_changed(found[0])
                    try:
                        await self._take(leader_id, found[0], answer)
                    except DiskFull:
                        session.start_over()
                        self._wait(leader_id, found[0])
                    except LogClosed:
                        self.leave(found[0])  # this broker has been relieved of it meanwhile

    async def _take(self, leader_id: int, partition: Partition, answer: PartitionData) -> None:
        broker = self._broker
        taken = take(partition, answer, now_ms=broker.now_ms())
        if taken is FetchOutcome.ASK_FOR_START:
            epoch, where = partition.leader_epoch, partition.topic_partition
            start = await broker.call(
                leader_id, lambda other, reply: answer_start(other, where, epoch, reply)
            )
            if not counts(partition, epoch):
                return
            taken = FetchOutcome.WAIT
            if isinstance(start, int):
                taken = take_start(partition, start, now_ms=broker.now_ms())
        if taken is FetchOutcome.WAIT:
            self._wait(leader_id, partition)

    def _wait(self, leader_id: int, partition: Partition) -> None:
        if self._leaders.get(partition) == leader_id:
            self._paused[partition] = self._broker.around.clock.now_ms + _BACKOFF_MS
            self._sessions[leader_id].leave(partition)


def answer_start(
    broker: "SimulatedBroker", where: TopicPartition, epoch: int, reply: Reply
) -> None:
    """Where the log of a partition starts (ListOffsets, earliest); None if that is not ours to say."""
    partition = broker.partitions.get(*where)
    if partition is None or partition.fence(epoch) is not None:
        reply(None)
    else:
        reply(partition.log.log_start_offset)


def _request(broker: "SimulatedBroker", session: FollowerSession) -> FetchRequest:
    asked = session.ask()
    return FetchRequest(
        replica_state=ReplicaState(replica_id=broker.broker_id, replica_epoch=broker.epoch),
        session_id=asked.session_id,
        session_epoch=asked.session_epoch,
        topics=asked.topics,
        forgotten_topics_data=asked.forgotten,
    )


def answer_fetch(request: FetchRequest, broker: "SimulatedBroker", reply: Reply) -> None:
    """Answer a follower: at once if there is anything to say, else when there is, or after a while."""
    session = broker.fetch_sessions.resolve(request, uses_ids=True, now_ms=broker.now_ms())
    if isinstance(session, ErrorCode):
        reply(FetchResponse(error_code=session))
        return
    is_over = False
    waiting: dict[SessionPartitionKey, Partition] = {}

    def look(*, at_last: bool = False) -> None:
        nonlocal is_over
        if is_over:
            return
        asks = _asks(request, session)
        answers = [(key, _read(broker, request, key, ask)) for key, ask in asks]
        if at_last or any(_is_news(answer) for _, answer in answers):
            is_over = True
            timeout.call_off()
            for partition in waiting.values():
                partition.append_waiters.remove(look)
            if session is not None:
                session.on_append = None
            reply(_response(session, answers))
            _stand(broker, request, session, answers)
            return
        for key, _ in asks:
            if key not in waiting and (hosted := _hosted(broker, key)) is not None:
                waiting[key] = hosted
                hosted.append_waiters.add(look)

    timeout = broker.deliver(_MAX_WAIT_MS, lambda: look(at_last=True))
    if session is not None:
        assert request.replica_state is not None
        session.wake_expired(request.replica_state.replica_epoch, broker.now_ms())
        session.on_append = look
    look()


def _stand(
    broker: "SimulatedBroker",
    request: FetchRequest,
    session: FetchSession | None,
    answers: list[tuple[SessionPartitionKey, PartitionData]],
) -> None:
    """What a follower has all of is not looked at again before it stirs."""
    assert request.replica_state is not None
    for key, answer in answers:
        hosted = _hosted(broker, key)
        if session is None or hosted is None or _is_news(answer) or key not in session.partitions:
            continue
        session.mark_idle(key, hosted, request.replica_state.replica_id)


def _asks(
    request: FetchRequest, session: FetchSession | None
) -> list[tuple[SessionPartitionKey, FetchPartition]]:
    if session is not None:
        return [(key, session.partitions[key].ask) for key in session.active]
    return [
        (((topic.topic, topic.topic_id), ask.partition), ask)
        for topic in request.topics
        for ask in topic.partitions
    ]


def _hosted(broker: "SimulatedBroker", key: SessionPartitionKey) -> Partition | None:
    (_, topic_id), index = key
    name = broker.partitions.topic_name(topic_id)
    return None if name is None else broker.partitions.get(name, index)


def _response(
    session: FetchSession | None, answers: list[tuple[SessionPartitionKey, PartitionData]]
) -> FetchResponse:
    """All of it, or what a session has not heard yet."""
    if session is not None:
        answers = [
            (key, answer)
            for key, answer in answers
            if key in session.partitions and session.partitions[key].has_news(_as_told(answer))
        ]
    return FetchResponse(
        session_id=0 if session is None else session.session_id,
        responses=[
            FetchableTopicResponse(topic_id=topic_id, partitions=[answer])
            for ((_, topic_id), _), answer in answers
        ],
    )


def _as_told(answer: PartitionData) -> FetchedPartition:
    """The same in the form in which a broker makes it."""
    diverging = answer.diverging_epoch
    return FetchedPartition(
        answer.partition_index,
        answer.error_code,
        answer.high_watermark,
        log_start_offset=answer.log_start_offset,
        records=answer.records or b"",
        details=None if diverging is None else FetchDetails(diverging_epoch=diverging),
    )


def _is_news(answer: PartitionData) -> bool:
    return bool(answer.error_code or answer.records) or answer.diverging_epoch is not None


def _read(
    broker: "SimulatedBroker", request: FetchRequest, key: SessionPartitionKey, ask: FetchPartition
) -> PartitionData:
    partition = _hosted(broker, key)
    if partition is None:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return PartitionData(partition_index=ask.partition, error_code=error)
    state = request.replica_state
    assert state is not None
    follower = FollowerFetch(
        state.replica_id,
        state.replica_epoch,
        ask.fetch_offset,
        ask.last_fetched_epoch,
        ask.current_leader_epoch,
        ask.log_start_offset,
    )
    found = partition.read_as_leader(follower, ask.partition_max_bytes, now_ms=broker.now_ms())
    return fetched(ask.partition, found)


def fetched(index: int, found: PartitionRead | Refusal) -> PartitionData:
    """What a read yields, as an answer on the wire."""
    if isinstance(found, Refusal):
        return PartitionData(partition_index=index, error_code=found.error_code)
    diverging = found.diverging
    return PartitionData(
        partition_index=index,
        high_watermark=found.high_watermark,
        log_start_offset=found.log_start_offset,
        diverging_epoch=None
        if diverging is None
        else EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset),
        records=found.records.copy() if found.records.length else b"",
    )
