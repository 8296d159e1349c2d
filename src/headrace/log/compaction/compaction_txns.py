"""Which batches belong to aborted transactions, and which markers are still needed because data of their transaction remains (pure).

Fed with every batch from the log's start on, in order. Aborted data goes at once. A marker stays as long as a batch of
its transaction was met: a reader that took the data must meet the marker, and producer state would otherwise see an
open transaction. So the data goes in one compaction, and the marker in a later one, after its delete horizon.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from headrace.log.segments.txn_index import AbortedTxn
from headrace.records.batch_view import BatchHeader
from headrace.records.control_batch import ControlType


class MarkerFate(NamedTuple):
    """What to do with a marker: whether nothing needs it any more, and the index entry to keep with it."""

    is_idle: bool
    aborted: AbortedTxn | None = None


class CompactedTxns:
    """The transactions around the batch that was met last."""

    __slots__ = ("_aborted", "_indexed", "_last_stable_offset", "_ongoing", "_upcoming")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        """`aborted` are index entries in the order of their markers; they are taken from it as needed."""
        self._indexed = iter(aborted)
        self._last_stable_offset = -1
        self._upcoming: list[tuple[int, AbortedTxn]] = []  # heap by first offset
        self._aborted: dict[int, tuple[AbortedTxn, bool]] = {}  # of a producer; was data met
        self._ongoing: set[int] = set()  # producers with data met of a transaction not aborted

    def on_data(self, batch: BatchHeader) -> bool:
        """Whether this data batch was aborted."""
        if not batch.is_transactional:
            return False
        self._advance(batch.last_offset)
        found = self._aborted.get(batch.producer_id)
        if found is not None and batch.base_offset <= found[0].last_offset:
            self._aborted[batch.producer_id] = (found[0], True)
            return True
        self._ongoing.add(batch.producer_id)
        return False

    def on_marker(self, batch: BatchHeader, control_type: int | None) -> MarkerFate:
        """What to do with a control batch. Its type is None if an earlier compaction has emptied it."""
        self._advance(batch.last_offset)
        match control_type:
            case None:
                return MarkerFate(is_idle=True)
            case ControlType.ABORT:
                had_data = self._end(batch.producer_id)
                found = self._aborted.pop(batch.producer_id, None)
                if found is not None and found[1]:
                    return MarkerFate(is_idle=False, aborted=found[0])
                return MarkerFate(is_idle=not had_data)
            case ControlType.COMMIT:
                return MarkerFate(is_idle=not self._end(batch.producer_id))
            case _:
                return MarkerFate(is_idle=False)

    def _end(self, producer_id: int) -> bool:
        had_data = producer_id in self._ongoing
        self._ongoing.discard(producer_id)
        return had_data

    def _advance(self, offset: int) -> None:
        # Behind an entry with a last stable offset past `offset`, none can start at or before it.
        while self._last_stable_offset <= offset:
            txn = next(self._indexed, None)
            if txn is None:
                self._last_stable_offset = 2**63 - 1
                break
            self._last_stable_offset = txn.last_stable_offset
            heappush(self._upcoming, (txn.first_offset, txn))
        while self._upcoming and self._upcoming[0][0] <= offset:
            txn = heappop(self._upcoming)[1]
            known = self._aborted.get(txn.producer_id)
            # An entry whose marker is behind us speaks of nothing here: it must not outlive its transaction.
            if known is None or known[0].last_offset < txn.first_offset:
                self._aborted[txn.producer_id] = (txn, False)
