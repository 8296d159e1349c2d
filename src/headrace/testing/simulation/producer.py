"""Producers of a simulated cluster, and what they have a right to expect.

A producer sends some batches to a partition at once, waits for all answers, and sends again, in order, what was not
acknowledged, until all is. With acks=1 and acks=0 nothing is sent again. What was acknowledged with acks=all is committed
at the offset that was answered.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from headrace.client.exchange import Disconnected
from headrace.ids import TopicIdPartition
from headrace.records.batch_builder import PLAIN, BatchOptions, build_batch, records_at
from headrace.testing.simulation.story import Violation
from headrace.testing.simulation.wire_client import (
    ClientAround,
    KnownTopic,
    Unanswered,
    WireClient,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

_INIT_VERSION: Final = 4
_BY_NAME: Final = 9  # versions of Produce
_BY_ID: Final = 13
_TIMEOUT_MS: Final = 1_500
_PAUSE_S: Final = 0.15
_MAX_GAPS: Final = 20  # refusals for missing batches, each of which may be a leader that is behind


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerKind:
    """What a producer asks for."""

    acks: int
    is_idempotent: bool = False
    most_in_flight: int = 1
    codec: int = 0
    keys: int = 0  # so many different ones; 0 for all different


@dataclass(slots=True)
class Sent:
    """A batch that was or will be sent."""

    number: int  # in the order of sending
    data: bytes
    is_done: bool = False
    gaps: int = 0


@dataclass(slots=True)
class _Target:
    """A partition that is produced to."""

    topic: str
    topic_id: UUID
    partition: int
    sequence: int = 0
    acked: dict[int, bytes] = field(default_factory=dict)  # by number


class SimulatedProducer:
    """One producer; `pending` is what it has sent and must be acknowledged yet."""

    def __init__(
        self, around: ClientAround, number: int, kind: ProducerKind, topics: list[str]
    ) -> None:
        self._around = around
        self._kind = kind
        self._topics = topics
        self._client = WireClient(around, f"producer-{number}")
        self._count = 0  # of records
        self._sent = 0  # batches
        self._number = number
        self._producer_id = -1
        self._producer_epoch = -1
        self._targets: dict[TopicIdPartition, _Target] = {}
        self.pending: tuple[TopicIdPartition, list[Sent]] | None = None

    @property
    def name(self) -> str:
        """As the story calls it."""
        return self._client.name

    async def run(self) -> None:
        """Produce until the run is over, and everything is acknowledged."""
        while not self._around.is_over:
            topic = self._client.chance.choice(self._topics)
            known = None if self._around.is_resting else await self._client.topic(topic)
            if known is not None and known.partitions and await self._is_initialised():
                await self._produce(topic, known)
            await self._client.pause(_PAUSE_S)
        self._client.close()

    async def _is_initialised(self) -> bool:
        if not self._kind.is_idempotent or self._producer_id >= 0:
            return True
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        try:
            answer = await self._client.call_any(request, _INIT_VERSION)
        except Unanswered:
            return False
        if answer.error_code:
            return False
        for target in self._targets.values():
            target.sequence = 0
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
        return True

    async def _produce(self, topic: str, known: KnownTopic) -> None:
        index = self._client.chance.choice(list(known.partitions))
        where = TopicIdPartition(known.topic_id, index)
        target = self._targets.setdefault(where, _Target(topic, known.topic_id, index))
        count = self._client.chance.randint(1, self._kind.most_in_flight)
        window = [self._next_batch(target) for _ in range(count)]
        if self._kind.acks == -1:
            self.pending = where, window
        await self._deliver(target, window)
        self.pending = None

    def _next_batch(self, target: _Target) -> Sent:
        self._sent += 1
        return Sent(self._sent, self._build(target))

    def _build(self, target: _Target) -> bytes:
        chance, kind = self._client.chance, self._kind
        size = chance.choice((1, 1, 3))
        pairs = []
        for _ in range(size):
            self._count += 1
            name = b"%d-%d" % (self._number, self._count)
            key = b"k%d" % chance.randrange(kind.keys) if kind.keys else name
            pairs.append((key, name * chance.choice((1, 1, 10))))
        options = PLAIN
        if kind.is_idempotent:
            options = BatchOptions(
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                base_sequence=target.sequence,
                codec=kind.codec,
            )
            target.sequence += size
        return bytes(build_batch(records_at(0, self._around.wall_clock_ms(), pairs), options))

    async def _deliver(self, target: _Target, window: list[Sent]) -> None:
        """Send until everything is acknowledged, or cannot be any more."""
        while left := [sent for sent in window if not sent.is_done]:
            if not await self._send(target, left) or self._kind.acks != -1:
                return
            if any(not sent.is_done for sent in left):
                await self._client.pause(_PAUSE_S)
                await self._client.learn(target.topic)

    async def _send(self, target: _Target, batches: list[Sent]) -> bool:
        """Send once, all at once. Returns whether it is worth another attempt."""
        client = self._client
        known = await client.topic(target.topic)
        if known is None:
            return await self._exists(target)
        if known.topic_id != target.topic_id:
            return False
        leader = known.partitions[target.partition].leader
        if leader < 0:
            return await self._exists(target)
        try:
            await client.connection(leader)  # before: the batches must leave in their order
        except Unanswered:
            return await self._exists(target)
        if self._kind.acks == 0:
            await self._tell(leader, target, batches)
            return False
        answers = [
            asyncio.create_task(client.call(leader, self._request(target, sent), _BY_ID))
            for sent in batches
        ]
        await asyncio.wait(answers)
        for sent, answer in zip(batches, answers, strict=True):
            error = answer.exception()
            if error is None:
                response = answer.result().responses[0].partition_responses[0]
                self._take(target, sent, response.error_code, response.base_offset)
            elif not isinstance(error, Unanswered):
                raise error
        return await self._exists(target)

    async def _exists(self, target: _Target) -> bool:
        """Whether the topic is still there, as far as anybody knows."""
        return self._around.invariants.topic_ids.get(target.topic) == target.topic_id

    def _request(self, target: _Target, sent: Sent) -> ProduceRequest:
        data = PartitionProduceData(index=target.partition, records=sent.data)
        topic = TopicProduceData(name=target.topic, topic_id=target.topic_id, partition_data=[data])
        return ProduceRequest(acks=self._kind.acks, timeout_ms=_TIMEOUT_MS, topic_data=[topic])

    async def _tell(self, leader: int, target: _Target, batches: list[Sent]) -> None:
        try:
            connection = await self._client.connection(leader)
            for sent in batches:
                await connection.tell(self._request(target, sent), _BY_ID)
        except (Disconnected, Unanswered):
            pass

    def _take(self, target: _Target, sent: Sent, error_code: int, base_offset: int) -> None:
        error = ErrorCode.of(error_code)
        if error is ErrorCode.NONE or error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            sent.is_done = True
            if self._kind.acks == -1:
                self._acknowledged(target, sent, base_offset if not error else -1)
        elif error in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
            sent.gaps += 1
            truth = self._around.invariants.truth_of(target.topic, target.partition)
            if truth is not None and truth.unclean_epoch >= 0:
                self._producer_id = (
                    -1
                )  # what came before may be gone: as a new producer, with the next batch
                sent.is_done = True
            elif sent.gaps > _MAX_GAPS:
                raise Violation(
                    f"exactly once: {self.name} is refused with {error.name} for good: "
                    f"{target.topic}-{target.partition}"
                )
        elif not error.retriable and error is not ErrorCode.UNKNOWN_TOPIC_ID:
            raise Violation(f"no unexpected error: {self.name} is answered {error.name}")

    def _acknowledged(self, target: _Target, sent: Sent, base_offset: int) -> None:
        where = TopicIdPartition(target.topic_id, target.partition)
        truth = self._around.invariants.truths.get(where)
        if truth is None:
            return  # deleted meanwhile
        target.acked[sent.number] = sent.data
        if base_offset >= 0:
            truth.check_acked(base_offset, sent.data)

    def check_acked(self) -> None:
        """Everything that was acknowledged is committed, and in order if the producer is idempotent."""
        for where, target in self._targets.items():
            truth = self._around.invariants.truths.get(where)
            if truth is None or truth.unclean_epoch >= 0:
                continue
            places = truth.places([data for _, data in sorted(target.acked.items())])
            if -1 in places:
                raise Violation(f"nothing acknowledged is lost: {truth.name}: {places}")
            if self._kind.is_idempotent and places != sorted(set(places)):
                raise Violation(f"exactly once: {truth.name} is out of order: {places}")
