"""Partitions and producers around a transaction coordinator, as plain models that note what must not happen.

A partition keeps what a partition leader keeps of a producer: its epoch, the epoch of the coordinator that wrote its last
marker, and the records of its open transaction. Each record knows the transaction that wrote it.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.coordinator.transaction.markers import WriteMarkers
from headrace.coordinator.transaction.state import ProducerIdentity
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode


class TransactionKey(NamedTuple):
    """A transaction of one producer."""

    producer: int
    number: int


@dataclass(slots=True)
class ProducerState:
    """What a partition knows of one producer id."""

    epoch: int = -1
    coordinator_epoch: int = -1
    open: list[TransactionKey] = field(default_factory=list)


@dataclass(slots=True)
class PartitionModel:
    """A partition whose leader verifies every write with the coordinator."""

    producers: defaultdict[int, ProducerState] = field(
        default_factory=lambda: defaultdict(ProducerState)
    )
    committed: set[TransactionKey] = field(default_factory=set)
    aborted: set[TransactionKey] = field(default_factory=set)

    def write(self, identity: ProducerIdentity, key: TransactionKey) -> bool:
        state = self.producers[identity.producer_id]
        if identity.epoch < state.epoch:
            return False
        state.epoch = identity.epoch
        state.open.append(key)
        return True

    def mark(self, markers: WriteMarkers, coordinator_epoch: int) -> ErrorCode:
        state = self.producers[markers.producer_id]
        if coordinator_epoch < state.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        is_strict = markers.transaction_version >= 2 and bool(state.open)
        if markers.producer_epoch < state.epoch + is_strict:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        state.epoch, state.coordinator_epoch = markers.producer_epoch, coordinator_epoch
        (self.committed if markers.commit else self.aborted).update(state.open)
        state.open.clear()
        return ErrorCode.NONE

    @property
    def open(self) -> list[TransactionKey]:
        return [key for state in self.producers.values() for key in state.open]


@dataclass(slots=True)
class Client:
    """A producer that knows what it was told, and repeats what it was not told."""

    number: int
    transactional_id: str
    version: int
    identity: ProducerIdentity | None = None
    is_dead: bool = False
    is_busy: bool = False
    is_open: bool = False
    count: int = 0
    repeats: bool | None = None
    """The outcome that it asked for without hearing an answer: it may ask for nothing else."""

    @property
    def key(self) -> TransactionKey:
        return TransactionKey(self.number, self.count)

    @property
    def is_ready(self) -> bool:
        return self.identity is not None and not self.is_dead and not self.is_busy


PARTITIONS = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0))
