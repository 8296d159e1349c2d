"""Consumers of a simulated cluster: each reads one partition from its start and checks every batch that it is given."""

from typing import Final

from headrace.ids import TopicIdPartition
from headrace.testing.simulation.story import Violation
from headrace.testing.simulation.truth import Truth
from headrace.testing.simulation.wire_client import (
    ClientAround,
    KnownTopic,
    Unanswered,
    WireClient,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)

_FETCH_VERSION: Final = 17
_MAX_WAIT_MS: Final = 400
_MAX_BYTES: Final = 2_000
_PAUSE_S: Final = 0.25
_FROM_FOLLOWER: Final = 0.2  # share of the fetches
_NO_SESSION_EPOCH: Final = -1


class SimulatedConsumer:
    """Reads one partition; of a topic that was created again, from the start."""

    def __init__(
        self,
        around: ClientAround,
        number: int,
        topic: str,
        partition: int,
        *,
        reads_committed: bool,
    ) -> None:
        self._around = around
        self._client = WireClient(around, f"consumer-{number}")
        self._topic = topic
        self._partition = partition
        self._isolation_level = int(reads_committed)
        self._where: TopicIdPartition | None = None
        self.position = 0

    @property
    def name(self) -> str:
        """As the story calls it."""
        return self._client.name

    @property
    def lag(self) -> str | None:
        """What it has not read yet, in words; None if it has read everything."""
        truth = self._around.invariants.truth_of(self._topic, self._partition)
        if truth is None or truth.waits_for_operator:
            return None
        if truth.where != self._where:
            return f"{self.name} has not begun to read {truth.name}"
        if self.position < truth.end:
            return f"{self.name} is at {self.position} of {truth.name}, committed is {truth.end}"
        return None

    async def run(self) -> None:
        """Read until the run is over."""
        while not self._around.is_over:
            known = await self._client.topic(self._topic)
            if known is not None and self._partition in known.partitions:
                where = TopicIdPartition(known.topic_id, self._partition)
                if where != self._where:
                    self._where, self.position = where, 0
                await self._fetch(known)
            else:
                await self._client.learn(self._topic)
            await self._client.pause(_PAUSE_S)
        self._client.close()

    async def _fetch(self, known: KnownTopic) -> None:
        client = self._client
        partition = known.partitions[self._partition]
        target = partition.leader
        if target < 0 or client.chance.random() < _FROM_FOLLOWER:
            target = client.any_broker()
        ask = FetchPartition(
            partition=self._partition,
            current_leader_epoch=client.chance.choice((-1, partition.leader_epoch)),
            fetch_offset=self.position,
            partition_max_bytes=_MAX_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            isolation_level=self._isolation_level,
            session_epoch=_NO_SESSION_EPOCH,
            topics=[FetchTopic(topic_id=known.topic_id, partitions=[ask])],
        )
        try:
            answer = await client.call(target, request, _FETCH_VERSION)
        except Unanswered:
            await client.learn(self._topic)
            return
        if answer.error_code:
            raise Violation(f"no unexpected error: {self.name}: fetch error {answer.error_code}")
        if answer.responses:
            await self._take(answer.responses[0].partitions[0])

    async def _take(self, data: PartitionData) -> None:
        assert self._where is not None
        truth = self._around.invariants.truths.get(self._where)
        if truth is None:
            self._client.forget(self._topic)  # deleted
            return
        error = ErrorCode.of(data.error_code)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._start_again(truth)
        elif error is not ErrorCode.NONE:
            if not error.retriable and error is not ErrorCode.UNKNOWN_TOPIC_ID:
                raise Violation(f"no unexpected error: {self.name} is answered {error.name}")
            await self._client.learn(self._topic)
        elif data.records:
            next_offset = truth.check_served(bytes(data.records))
            self.position = max(self.position, next_offset)

    def _start_again(self, truth: Truth) -> None:
        """What was there and was not deleted must not disappear."""
        if self.position < truth.deleted_to:
            self.position = truth.deleted_to
        elif truth.unclean_epoch >= 0:
            self.position = min(self.position, truth.end)
        else:
            raise Violation(f"consistent read: {truth.name} has lost {self.position}")
