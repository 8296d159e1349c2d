"""State of transactions: a `Transaction` per transactional id, its steps from one status to the next, and a shard's table of them.

Owns how epochs and producer ids change with each step. Who may ask for a step is decided by the modules named after the
requests. Pure.

Two versions of the protocol work side by side. Under version 2 (KIP-890) the end of each transaction raises the producer's
epoch, so that a delayed request of the last transaction cannot be taken for one of the next. Below, only InitProducerId
raises it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from headrace.ids import NO_PRODUCER_ID, ProducerId, TopicPartition

NO_EPOCH: Final = -1
NO_START: Final = -1
MAX_EPOCH: Final = 2**15 - 1
"""Never given to a producer, so that every producer can be fenced by an epoch above its own."""

LAST_USABLE_EPOCH: Final = MAX_EPOCH - 1

BUMPS_AT_END: Final = 2
"""The first transaction version in which the end of a transaction raises the producer's epoch."""


class Status(Enum):
    """What a transactional id is doing. The names are Kafka's."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, but markers may be missing."""
        return self in (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether there is no transaction."""
        return self in (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


class ProducerIdentity(NamedTuple):
    """A producer id and an epoch of it."""

    producer_id: ProducerId
    epoch: int


class Transaction(NamedTuple):
    """All that is known of a transactional id."""

    producer_id: ProducerId
    producer_epoch: int
    timeout_ms: int
    status: Status
    last_update_ms: int
    start_ms: int = NO_START
    partitions: frozenset[TopicPartition] = frozenset()
    client_version: int = 0
    """The transaction version that the producer of the last step spoke."""
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    """The producer id before the last step; it differs only after a change of ids."""
    next_producer_id: ProducerId = NO_PRODUCER_ID
    """The producer id from the completion on, if the epochs of the present one are used up."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch that the same producer had before. Not stored, as in Kafka: a retry that goes to another coordinator is fenced."""

    @property
    def identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether no epoch above the present one may be given to a producer."""
        return self.producer_epoch >= LAST_USABLE_EPOCH

    def is_overdue(self, now_ms: int) -> bool:
        return self.status is Status.ONGOING and now_ms - self.start_ms > self.timeout_ms

    # ---- steps

    def with_epoch(
        self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        """InitProducerId gave the producer this epoch."""
        return self._replace(
            status=Status.EMPTY,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            last_update_ms=now_ms,
            start_ms=NO_START,
            partitions=frozenset(),
            client_version=0,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def with_timeout(self, timeout_ms: int, now_ms: int) -> "Transaction":
        """InitProducerId was repeated: only the time-out may have changed."""
        return self._replace(
            status=Status.EMPTY,
            timeout_ms=timeout_ms,
            last_update_ms=now_ms,
            start_ms=NO_START,
            client_version=0,
        )

    def with_producer_id(
        self, producer_id: ProducerId, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        """InitProducerId gave the producer another id, because the epochs of this one are used up."""
        return self.with_epoch(0, last_epoch, timeout_ms, now_ms)._replace(producer_id=producer_id)

    def with_partitions(
        self, added: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> "Transaction":
        """Partitions take part; the first ones begin the transaction."""
        return self._replace(
            status=Status.ONGOING,
            partitions=self.partitions | added,
            start_ms=self.start_ms if self.status is Status.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
            previous_producer_id=self.producer_id,
        )

    def prepared(
        self, *, commit: bool, client_version: int, next_producer_id: ProducerId, now_ms: int
    ) -> "Transaction":
        """The producer ended it. Under version 2 the markers carry the raised epoch."""
        bumps = client_version >= BUMPS_AT_END
        return self._replace(
            status=Status.PREPARE_COMMIT if commit else Status.PREPARE_ABORT,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH)
            if bumps
            else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            start_ms=self.start_ms if self.status is Status.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
        )

    def fenced(self, now_ms: int) -> "Transaction":
        """The coordinator aborts it, and the markers fence its producer at the partitions.

        The raised epoch is given to nobody but to this producer, if it asks by its old one before another producer took its place:
        so it goes on after a time-out, as in Kafka."""
        return self._replace(
            status=Status.PREPARE_ABORT,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=self.producer_epoch,
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Every marker is written."""
        changes_id = self.next_producer_id != NO_PRODUCER_ID
        commit = self.status is Status.PREPARE_COMMIT
        return self._replace(
            status=Status.COMPLETE_COMMIT if commit else Status.COMPLETE_ABORT,
            producer_id=self.next_producer_id if changes_id else self.producer_id,
            producer_epoch=0 if changes_id else self.producer_epoch,
            partitions=frozenset(),
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )


@dataclass(slots=True)
class ShardState:
    """The transactional ids of one shard, and those of them that periodic work looks for."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
    ongoing: dict[str, None] = field(default_factory=dict)  # in the order in which they began
    prepared: dict[str, None] = field(default_factory=dict)

    def put(self, transactional_id: str, transaction: Transaction) -> None:
        self.transactions[transactional_id] = transaction
        _mark(self.ongoing, transactional_id, present=transaction.status is Status.ONGOING)
        _mark(self.prepared, transactional_id, present=transaction.status.is_prepared)

    def remove(self, transactional_id: str) -> None:
        self.transactions.pop(transactional_id, None)
        self.ongoing.pop(transactional_id, None)
        self.prepared.pop(transactional_id, None)

    def prepared_transactions(self) -> Iterator[tuple[str, Transaction]]:
        for transactional_id in self.prepared:
            yield transactional_id, self.transactions[transactional_id]


def _mark(ids: dict[str, None], transactional_id: str, *, present: bool) -> None:
    if present:
        ids[transactional_id] = None
    else:
        ids.pop(transactional_id, None)
