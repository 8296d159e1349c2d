"""Decisions of exactly-once sinks: which transactions a batch consists of, as records of the decision topic, and what follows. Pure.

A sink's tasks write in transactions that stay open. The commit of the batch writes one decision that names these transactions, and
only then ends them: whoever finds the decision can finish the batch, and nobody can decide the batch differently. A second record
says that all transactions of the batch are confirmed. Reading and writing the topic is `decision_topic`, the order of the requests
`exactly_once`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from headrace.client.transaction_coordinator import OpenTransaction
from headrace.errors import HeadraceError
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import HEADER_BYTES, read_header
from headrace.records.control_batch import ControlType, read_marker

_DECISION: Final = "decision:"
_COMPLETED: Final = "completed:"
_FORMAT: Final = 1


class WrongBatch(HeadraceError):
    """A batch cannot be written now: the decision topic says that it would lose or repeat another one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The transactions that make up a batch."""

    batch_id: int
    transactions: tuple[OpenTransaction, ...]


@dataclass(frozen=True, slots=True)
class SinkState:
    """What is known of a sink: its last decision, and the last batch whose transactions are all confirmed."""

    decision: Decision | None = None
    completed_batch: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do for the last decision."""
        return self.decision is None or self.completed_batch == self.decision.batch_id


class Step(Enum):
    """What to do with a batch."""

    WRITE = auto()  # nobody has decided it
    SKIP = auto()  # it was decided before


def task_step(state: SinkState, batch_id: int, *, older_is_done: bool) -> Step:
    """What a task does with its rows. Raises WrongBatch.

    `older_is_done`: batches with lower ids count as written (txnVersion). Otherwise a lower id is a checkpoint that was set back.
    """
    decision = state.decision
    if decision is None:
        return Step.WRITE
    if decision.batch_id == batch_id:
        return Step.SKIP
    if decision.batch_id > batch_id:
        if older_is_done:
            return Step.SKIP
        raise WrongBatch(
            f"batch {batch_id} is older than batch {decision.batch_id}, the last one that this query has written: its checkpoint"
            " was set back or restored from a backup. Start the query with a new checkpoint, or with the newest one"
        )
    if not state.is_complete:
        raise WrongBatch(
            f"batch {decision.batch_id} is decided, and the end of its transactions is not confirmed: it must be written again"
            f" before batch {batch_id}. Do not catch errors of a write and go on with the next batch"
        )
    return Step.WRITE


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """What the commit of a batch does, in this order."""

    decide: Decision | None = None  # write this decision first
    finish: Decision | None = (
        None  # then commit these transactions, and write that the batch is complete
    )
    abort: tuple[OpenTransaction, ...] = ()  # then abort these: the batch was decided without them


def commit_plan(
    state: SinkState,
    batch_id: int,
    transactions: Sequence[OpenTransaction],
    *,
    older_is_done: bool,
) -> CommitPlan:
    """How a batch is committed whose tasks left these transactions open. Raises WrongBatch."""
    if task_step(state, batch_id, older_is_done=older_is_done) is Step.SKIP:
        decision = state.decision
        assert decision is not None
        return CommitPlan(
            finish=None if state.is_complete else decision,
            abort=undecided(state, transactions),
        )
    if not transactions:
        return CommitPlan()
    decision = Decision(batch_id, tuple(transactions))
    return CommitPlan(decide=decision, finish=decision)


def undecided(
    state: SinkState, transactions: Iterable[OpenTransaction]
) -> tuple[OpenTransaction, ...]:
    """The transactions that the last decision does not name. Only these may be aborted."""
    decided = () if state.decision is None else state.decision.transactions
    return tuple(each for each in transactions if each not in decided)


# -- records -------------------------------------------------------------------------------------


def decision_record(sink_id: str, decision: Decision) -> tuple[bytes, bytes]:
    """Key and value."""
    value = {
        "format": _FORMAT,
        "batch": decision.batch_id,
        "transactions": [
            [each.transactional_id, each.producer_id, each.producer_epoch, each.version]
            for each in decision.transactions
        ],
    }
    return (_DECISION + sink_id).encode(), json.dumps(value, separators=(",", ":")).encode()


def completed_record(sink_id: str, batch_id: int) -> tuple[bytes, bytes]:
    """Key and value."""
    value = {"format": _FORMAT, "batch": batch_id}
    return (_COMPLETED + sink_id).encode(), json.dumps(value, separators=(",", ":")).encode()


class DecisionLog:
    """The decisions of one partition of the topic, in the order of its log.

    It is fed with all batches, also of open and aborted transactions, because another sink's open transaction must not hide a
    decision. So it goes by the markers itself.
    """

    def __init__(self) -> None:
        self.position = 0  # the next offset to read
        self._states: dict[str, SinkState] = {}
        self._open: dict[int, list[Record]] = {}  # by producer id

    def state_of(self, sink_id: str) -> SinkState:
        return self._states.get(sink_id, SinkState())

    def feed(self, records: bytes | memoryview) -> None:
        """Take whole batches from `position` on; earlier ones are passed over."""
        view = memoryview(records)
        start = 0
        while len(view) - start >= HEADER_BYTES:
            header = read_header(view, start)
            batch = view[start : start + header.size]
            start += header.size
            if start > len(view):
                return  # the rest of this batch comes with the next fetch
            if header.next_offset <= self.position:
                continue
            self.position = header.next_offset
            if header.is_control:
                waiting = self._open.pop(header.producer_id, [])
                if read_marker(batch)[0] == ControlType.COMMIT:
                    self._apply(waiting)
            elif header.is_transactional:
                self._open.setdefault(header.producer_id, []).extend(read_batch(batch))
            else:
                self._apply(read_batch(batch))

    def settle(self, last_stable_offset: int) -> None:
        """Records below that are committed where no marker was seen: compaction takes aborted records before their markers."""
        for producer_id, waiting in list(self._open.items()):
            stable = [each for each in waiting if each.offset < last_stable_offset]
            self._apply(stable)
            left = waiting[len(stable) :]
            if left:
                self._open[producer_id] = left
            else:
                del self._open[producer_id]

    def _apply(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.key is None or record.value is None:
                continue
            key, value = record.key.decode(), json.loads(record.value)
            if value["format"] != _FORMAT:
                raise HeadraceError(
                    f"a decision of format {value['format']}, of a newer Headrace: {key}"
                )
            if key.startswith(_DECISION):
                sink_id = key.removeprefix(_DECISION)
                decision = Decision(
                    value["batch"], tuple(_transaction(each) for each in value["transactions"])
                )
                self._states[sink_id] = replace(self.state_of(sink_id), decision=decision)
            elif key.startswith(_COMPLETED):
                sink_id = key.removeprefix(_COMPLETED)
                self._states[sink_id] = replace(
                    self.state_of(sink_id), completed_batch=value["batch"]
                )


def _transaction(fields: Sequence[object]) -> OpenTransaction:
    transactional_id, producer_id, producer_epoch, version = fields
    assert isinstance(transactional_id, str)
    assert isinstance(producer_id, int)
    assert isinstance(producer_epoch, int)
    assert isinstance(version, int)
    return OpenTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        version=version,
    )
