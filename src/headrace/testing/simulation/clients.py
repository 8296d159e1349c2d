"""Producers and consumers of a simulated cluster, and what they have a right to expect.

A producer has one batch on its way at a time. With acks=all it sends it again until it is acknowledged, with sequence numbers
(idempotent) or without; with acks=1 it sends once. Consumers read from the leader or, now and then, from a follower.
"""

from collections.abc import Callable
from enum import Enum
from random import Random
from typing import Final, NamedTuple, Protocol

from headrace.ids import TopicPartition
from headrace.records.batch_builder import PLAIN, BatchOptions, build_batch, records_at
from headrace.testing.simulation.broker import Condition, SimulatedBroker
from headrace.testing.simulation.follower import fetched
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.truth import Violation
from headrace.testing.virtual_clock import VirtualClock
from headrace.testing.virtual_network import Reply, VirtualNetwork
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import PartitionData
from headrace.wire.refusal import Refusal

_TIMEOUT_MS: Final = 200
_RETRY_MS: Final = 40
_MAX_BYTES: Final = 500


class Kind(Enum):
    """What a producer asks for."""

    IDEMPOTENT = "idempotent"
    ALL = "all"
    ONE = "one"


class Produced(NamedTuple):
    """An answer to a batch."""

    error_code: int
    base_offset: int = -1


class Surroundings(Protocol):
    """What clients need of the cluster."""

    clock: VirtualClock
    network: VirtualNetwork
    chance: Random
    brokers: dict[int, SimulatedBroker]
    invariants: Invariants


class _Client:
    """Where the leaders are, as this client was last told, and one question at a time."""

    def __init__(self, around: Surroundings, place: int) -> None:
        self.around = around
        self.place = place
        self.leaders: dict[TopicPartition, tuple[int, int]] = {}  # → (epoch, broker)
        self._question = 0

    def learn(self, where: TopicPartition) -> None:
        """Ask some broker, which may be behind; but what is known already is never replaced by older."""
        up = [each for each in self.around.brokers.values() if each.condition is Condition.UP]
        if up:
            broker = self.around.chance.choice(up)
            state = broker.cluster.state.partition(*where)
            known_epoch = self.leaders.get(where, (-1, -1))[0]
            if state is not None and state.leader >= 0 and state.leader_epoch >= known_epoch:
                self.leaders[where] = (state.leader_epoch, state.leader)

    def ask(
        self,
        broker_id: int,
        request: Callable[[SimulatedBroker, Reply], None],
        on_answer: Callable[[object], None],
    ) -> None:
        """Ask a broker; None is answered if nothing comes in time, and what comes later is lost."""
        self._question += 1
        question, around = self._question, self.around

        def answered(answer: object) -> None:
            if question == self._question:
                self._question += 1
                timeout.call_off()
                on_answer(answer)

        def reply(answer: object) -> None:
            around.network.send(broker_id, self.place, lambda: answered(answer))

        broker = around.brokers[broker_id]
        timeout = around.clock.after(_TIMEOUT_MS, lambda: answered(None))
        around.network.send(
            self.place, broker_id, lambda: broker.happen(None, lambda: request(broker, reply))
        )


class SimulatedProducer:
    """One producer; `pending` is what is on its way."""

    def __init__(
        self, around: Surroundings, place: int, kind: Kind, partitions: list[TopicPartition]
    ) -> None:
        self._client = _Client(around, place)
        self._around = around
        self._partitions = partitions
        self._sequences = dict.fromkeys(partitions, 0)
        self._count = 0
        self.kind = kind
        self.producer_id = place
        self.is_stopped = False
        self.pending: tuple[TopicPartition, bytes] | None = None
        self.acked: dict[TopicPartition, list[bytes]] = {where: [] for where in partitions}

    def start(self) -> None:
        """Produce from now on."""
        self._around.clock.after(self._around.chance.randrange(50), self._next)

    def _next(self) -> None:
        if self.is_stopped:
            return
        where = self._around.chance.choice(self._partitions)
        size = self._around.chance.choice((1, 1, 3))
        pairs = [(b"%d" % self.producer_id, b"%d" % (self._count + n)) for n in range(size)]
        self._count += size
        options = PLAIN
        if self.kind is Kind.IDEMPOTENT:
            sequence = self._sequences[where]
            self._sequences[where] = sequence + size
            options = BatchOptions(
                producer_id=self.producer_id, producer_epoch=0, base_sequence=sequence
            )
        batch = bytes(build_batch(records_at(0, self._around.clock.now_ms, pairs), options))
        self.pending = (where, batch)
        self._send()

    def _send(self) -> None:
        assert self.pending is not None
        where, batch = self.pending
        if where not in self._client.leaders:
            self._client.learn(where)
        if where not in self._client.leaders:
            self._around.clock.after(_RETRY_MS, self._send)
            return
        acks = 1 if self.kind is Kind.ONE else -1
        _, leader = self._client.leaders[where]
        self._client.ask(
            leader,
            lambda broker, reply: answer_produce(broker, where, batch, acks, reply),
            self._on,
        )

    def _on(self, answer: object) -> None:
        assert self.pending is not None
        where, batch = self.pending
        if isinstance(answer, Produced) and not answer.error_code:
            if self.kind is not Kind.ONE:
                self._around.invariants.truths[where].check_acked(answer.base_offset, batch)
                self.acked[where].append(batch)
        else:
            self._client.learn(where)
            if self.kind is not Kind.ONE:
                self._around.clock.after(_RETRY_MS, self._send)
                return
        self.pending = None
        self._around.clock.after(1 + self._around.chance.randrange(100), self._next)


class SimulatedConsumer:
    """Reads one partition from its start; checks every batch that it is given."""

    def __init__(self, around: Surroundings, place: int, where: TopicPartition) -> None:
        self._client = _Client(around, place)
        self._around = around
        self.where = where
        self.is_stopped = False
        self.position = 0

    def start(self) -> None:
        """Read from now on."""
        self._around.clock.after(self._around.chance.randrange(50), self._next)

    def _next(self) -> None:
        where, chance = self.where, self._around.chance
        if where not in self._client.leaders or chance.random() < 0.1:
            self._client.learn(where)
        if where not in self._client.leaders:
            self._around.clock.after(_RETRY_MS, self._next)
            return
        epoch, target = self._client.leaders[where]
        if chance.random() < 0.2:
            target = chance.choice(list(self._around.brokers))
        position = self.position
        self._client.ask(
            target,
            lambda broker, reply: answer_consume(broker, where, position, epoch, reply),
            self._on,
        )

    def _on(self, answer: object) -> None:
        if self.is_stopped:
            return
        where, delay_ms = self.where, 80
        if isinstance(answer, PartitionData):
            truth = self._around.invariants.truths[where]
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                if self.position >= truth.deleted_to:
                    raise Violation(f"consistent read: {where} has lost {self.position}")
                self.position = truth.deleted_to
            elif answer.error_code:
                self._client.learn(where)
                delay_ms = _RETRY_MS
            elif answer.records:
                self.position = max(self.position, truth.check_served(bytes(answer.records)))
        self._around.clock.after(1 + self._around.chance.randrange(delay_ms), self._next)


def answer_produce(
    broker: SimulatedBroker, where: TopicPartition, batch: bytes, acks: int, reply: Reply
) -> None:
    """As `broker.apis.produce` does."""
    partition = broker.partitions.get(*where)
    if partition is None:
        reply(Produced(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return
    appended = partition.append((bytearray(batch),), acks=acks, now_ms=broker.now_ms())
    if isinstance(appended, Refusal):
        reply(Produced(appended.error_code))
        return
    broker.check_right_to_append()
    if acks == -1 and partition.high_watermark <= appended.last_offset:

        def settle(is_committed: bool) -> None:  # noqa: FBT001 (a callback's form)
            error = ErrorCode.NONE if is_committed else ErrorCode.NOT_LEADER_OR_FOLLOWER
            reply(Produced(error, appended.base_offset))

        partition.committed.add(appended.last_offset + 1, settle)
    else:
        reply(Produced(ErrorCode.NONE, appended.base_offset))


def answer_consume(
    broker: SimulatedBroker, where: TopicPartition, offset: int, epoch: int, reply: Reply
) -> None:
    """As `broker.apis.fetch` does for a consumer."""
    partition = broker.partitions.get(*where)
    if partition is None:
        reply(PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return
    found = partition.read(offset, _MAX_BYTES, current_leader_epoch=epoch, by_follower=True)
    reply(fetched(where.partition, found))
