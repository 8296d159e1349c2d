"""What is true of transactions: which batches belong to which, what became of them in each partition, and what a reader may see.

Each partition's committed batches are read once, in order: a transaction of a producer ends there with its marker. All or nothing: what
was answered as committed has all its batches committed in every partition, what was never asked to be committed has none.
"""

from dataclasses import dataclass, field
from enum import Enum

from headrace.ids import TopicIdPartition
from headrace.records.batch_view import headers_in, read_header
from headrace.records.control_batch import ControlType, read_marker
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.story import Violation
from headrace.testing.simulation.truth import AFTER_EPOCH, Truth
from headrace.wire.messages.fetch import AbortedTransaction


class Fate(Enum):
    """What a producer knows of the end of its transaction."""

    NOT_COMMITTED = "not committed"  # nobody was asked to commit it
    UNCERTAIN = "uncertain"  # somebody was, and did not answer
    COMMITTED = "committed"


@dataclass(slots=True)
class SimulatedTransaction:
    """One transaction of a producer, and its batches that were acknowledged."""

    name: str
    batches: dict[TopicIdPartition, list[bytes]] = field(default_factory=dict)
    fate: Fate = Fate.NOT_COMMITTED


class PartitionTransactions:
    """The transactions of one partition, as its committed batches and markers tell them."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._read_to = 0
        self._open: dict[int, list[tuple[int, bytes]]] = {}  # producer id → its batches by offset
        self._fates: dict[bytes, bool] = {}  # → whether the batch is committed; absent while open

    def read_on(self) -> None:
        """Take in what was committed since the last time."""
        for offset, batch in self._truth.committed.batches.items():
            if offset < self._read_to:
                continue
            self._read_to = batch.next_offset
            header = read_header(batch.data)
            if header.is_control:
                is_commit = read_marker(batch.data)[0] == ControlType.COMMIT
                for _, data in self._open.pop(header.producer_id, ()):
                    self._fates[data] = is_commit
            elif header.is_transactional:
                data = batch.data[AFTER_EPOCH:]
                self._open.setdefault(header.producer_id, []).append((offset, data))

    @property
    def first_open(self) -> int | None:
        """Where the oldest transaction begins that has not ended; None if all have."""
        return min((batches[0][0] for batches in self._open.values()), default=None)

    def fate_of(self, data: bytes) -> bool | None:
        """Whether a batch is committed; None if its transaction has not ended, or if it is not there."""
        return self._fates.get(data[AFTER_EPOCH:])


class TransactionTruth:
    """The transactions of one run."""

    def __init__(self, invariants: Invariants) -> None:
        self._invariants = invariants
        self._partitions: dict[TopicIdPartition, PartitionTransactions] = {}
        self.transactions: list[SimulatedTransaction] = []

    def of(self, where: TopicIdPartition) -> PartitionTransactions | None:
        """What became of the transactions of a partition; None if it is gone, or an unclean election gave up a part of it."""
        truth = self._invariants.truths.get(where)
        if truth is None or truth.unclean_epoch >= 0:
            return None
        found = self._partitions.setdefault(where, PartitionTransactions(truth))
        found.read_on()
        return found

    def check_served(
        self, where: TopicIdPartition, data: bytes, aborted: list[AbortedTransaction]
    ) -> None:
        """What a reader of committed data keeps of an answer: nothing that was aborted, nothing that may still be."""
        partition, truth = self.of(where), self._invariants.truths.get(where)
        if partition is None or truth is None:
            return
        to_come = sorted(aborted, key=lambda each: each.first_offset)
        dropped: set[int] = set()  # producers whose transaction was aborted
        with memoryview(data) as view:
            for position, header in headers_in(view):
                while to_come and to_come[0].first_offset <= header.last_offset:
                    dropped.add(to_come.pop(0).producer_id)
                if header.is_control:
                    dropped.discard(header.producer_id)
                    continue
                is_looked_at = header.is_transactional and header.next_offset > truth.deleted_to
                if not is_looked_at or header.producer_id in dropped:
                    continue
                fate = partition.fate_of(bytes(data[position : position + header.size]))
                if fate is not True:
                    raise Violation(
                        f"committed reads: {truth.name} at {header.base_offset}: served to a reader of "
                        f"committed data, but the transaction {'has not ended' if fate is None else 'was aborted'}"
                    )

    def open_somewhere(self) -> str | None:
        """A transaction that has not ended, in words."""
        for where in self._invariants.truths:
            partition = self.of(where)
            if partition is not None and (first := partition.first_open) is not None:
                name = self._invariants.truths[where].name
                return f"a transaction at {first} of {name} has not ended"
        return None

    def check_all_or_nothing(self) -> None:
        """When every transaction has ended."""
        for transaction in self.transactions:
            fates = set(self._fates(transaction))
            expected = {
                Fate.COMMITTED: ({True}, set()),
                Fate.NOT_COMMITTED: ({False}, set()),
                Fate.UNCERTAIN: ({True}, {False}, set()),
            }[transaction.fate]
            if fates not in expected:
                raise Violation(
                    f"all or nothing: {transaction.name} is {transaction.fate.value}, and its batches "
                    f"are {sorted(map(str, fates))} (True: committed)"
                )

    def _fates(self, transaction: SimulatedTransaction) -> list[bool | None]:
        found: list[bool | None] = []
        for where, batches in transaction.batches.items():
            partition, truth = self.of(where), self._invariants.truths.get(where)
            if partition is not None and truth is not None:
                found += [partition.fate_of(data) for data in batches]
        return found
