"""Exactly-once writing: the order in which the tasks, the commit and the abort of a batch talk to the cluster.

A task writes in a transaction and leaves it open. The commit decides (`decision_topic`) and then ends the transactions; when it is
repeated, by whatever process, it finishes what was decided. `decisions` says what has to be done, this module does it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.admin.transactions import list_transactions, terminate_transaction
from headrace.client.leaders import Leaders
from headrace.client.transaction_coordinator import (
    OpenTransaction,
    TransactionCoordinator,
    TransactionFailed,
)
from headrace.errors import HeadraceError
from headrace.pipelines.writing.decision_topic import DecisionTopic
from headrace.pipelines.writing.decisions import (
    Decision,
    Step,
    commit_plan,
    task_step,
    undecided,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

_log = logging.getLogger(__name__)
_OPEN_STATE: Final = "Ongoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIdentity:
    """Which batch of which sink is written. `run_id` differs between runs of a query: their transactions never meet."""

    sink_id: str
    batch_id: int
    run_id: str
    older_is_done: bool  # batches with lower ids count as written (txnVersion)

    def transactional_id(self, partition: int, attempt: int) -> str:
        """Of one attempt of one task: two attempts that run at once do not fence each other."""
        return f"{self.prefix}{self.run_id[:8]}-{partition}-{attempt}"

    @property
    def prefix(self) -> str:
        """Of the transactional ids of all tasks of the sink."""
        return f"headrace-{self.sink_id}-task-"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What a task has written, and the transaction that it left open."""

    record_count: int
    transaction: OpenTransaction | None
    was_decided: bool = False  # nothing was written: the rows are in the topic already


class TransactionalSink:
    """One process' connections for exactly-once writing."""

    def __init__(self, bootstrap_servers: str, client_id: str, give_up_after_s: float) -> None:
        self.leaders = Leaders(bootstrap_servers, client_id=client_id)
        self.coordinator = TransactionCoordinator(self.leaders, give_up_after_s=give_up_after_s)
        self._admin = Admin(bootstrap_servers, client_id=client_id, timeout_s=give_up_after_s)
        # A decision that is being fetched must not meet the answer to another request.
        self.topic = DecisionTopic(
            self._admin, Leaders(bootstrap_servers, client_id=client_id), self.coordinator
        )
        self._swept: set[tuple[str, str]] = set()

    def close(self) -> None:
        self.leaders.close()
        self.topic.close()
        self._admin.close()

    # In tasks.

    def is_decided(self, batch: BatchIdentity) -> bool:
        """Whether the rows of this batch are written already. Raises WrongBatch where it must not be written."""
        state = self.topic.state_of(batch.sink_id)
        step = task_step(state, batch.batch_id, older_is_done=batch.older_is_done)
        return step is Step.SKIP

    def begin(self, transactional_id: str, timeout_ms: int) -> OpenTransaction:
        """Open a task's transaction. Raises TransactionFailed."""
        found = self.coordinator.begin(transactional_id, timeout_ms=timeout_ms)
        if not isinstance(found, Refusal):
            return found
        if found.error_code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise TransactionFailed(
                f"kafka.transaction.timeout.ms={timeout_ms} is more than the brokers' transaction.max.timeout.ms: lower the one or"
                " raise the other"
            )
        raise TransactionFailed(
            f"no transaction for {transactional_id}: {found.error_code.name}: {found.text}"
        )

    def abandon(self, transaction: OpenTransaction) -> None:
        """Abort the transaction of a task that failed, if it can be done now."""
        try:
            refusal = self.coordinator.end(transaction, commit=False)
        except HeadraceError as error:
            _log.warning("%s stays open until its time-out: %s", transaction, error)
        else:
            if refusal is not None:
                _log.warning("%s is not aborted: %s", transaction, refusal.error_code.name)

    # At the driver.

    def commit(
        self,
        batch: BatchIdentity,
        transactions: Sequence[OpenTransaction],
        *,
        fail_on_data_loss: bool,
        has_failed_attempts: bool,
    ) -> None:
        """Write each row of a batch exactly once, whoever has begun it. Raises HeadraceError: the batch has to be written again."""
        self.topic.create()
        taken = self.topic.take(batch.sink_id)
        state = self.topic.state_of(batch.sink_id)
        plan = commit_plan(state, batch.batch_id, transactions, older_is_done=batch.older_is_done)
        if plan.decide is not None:
            self._require_open(plan.decide)
            self.topic.decide(batch.sink_id, plan.decide, taken)
        if plan.finish is not None:
            self._finish(batch.sink_id, plan.finish, fail_on_data_loss=fail_on_data_loss)
        for each in plan.abort:
            self.abandon(each)
        self._sweep(batch, plan.decide or state.decision, is_due=has_failed_attempts)

    def abort(self, batch: BatchIdentity, transactions: Sequence[OpenTransaction]) -> None:
        """Abort what is not decided. Spark asks for it after a commit that failed, too, which may have decided the batch."""
        self.topic.create()
        self.topic.take(batch.sink_id)
        for each in undecided(self.topic.state_of(batch.sink_id), transactions):
            self.abandon(each)

    def _require_open(self, decision: Decision) -> None:
        for each in decision.transactions:
            found = self.coordinator.is_open(each)
            if isinstance(found, Refusal):
                raise TransactionFailed(
                    f"nothing is known of {each.transactional_id}: {found.error_code.name}: {found.text}"
                )
            if not found:
                raise TransactionFailed(
                    f"the transaction {each.transactional_id} of batch {decision.batch_id} ended before the batch was decided. Nothing of"
                    " the batch is visible, and nothing is lost: start the query again. If it took longer than"
                    " kafka.transaction.timeout.ms, raise that option"
                )

    def _finish(self, sink_id: str, decision: Decision, *, fail_on_data_loss: bool) -> None:
        """Commit the transactions of a decision until each is confirmed."""
        for each in decision.transactions:
            refusal = self.coordinator.end(each, commit=True)
            if refusal is None:
                continue
            if refusal.error_code.retriable:
                raise TransactionFailed(
                    f"batch {decision.batch_id} is decided, and the commit of {each.transactional_id} is not confirmed"
                    f" ({refusal.error_code.name}: {refusal.text}). Start the query again: it goes on from there"
                )
            lost = (
                f"rows of batch {decision.batch_id} of {sink_id} are lost: the batch was decided, and its transaction"
                f" {each.transactional_id} was ended by somebody else before it was committed"
                f" ({refusal.error_code.name}: {refusal.text}), most likely by its time-out while no driver ran. Other rows of the batch may be"
                " visible. Compare the topic with the input of this batch and write what is missing"
            )
            if fail_on_data_loss:
                raise TransactionFailed(f"{lost}; then failOnDataLoss=false lets the query go on")
            _log.error("%s. Going on, because failOnDataLoss=false", lost)
        self.topic.complete(sink_id, decision.batch_id)

    def _sweep(self, batch: BatchIdentity, decision: Decision | None, *, is_due: bool) -> None:
        """Abort what earlier attempts and earlier runs left open: it would hold back readers until its time-out."""
        if (batch.sink_id, batch.run_id) in self._swept and not is_due:
            return
        self._swept.add((batch.sink_id, batch.run_id))
        decided = {each.transactional_id for each in decision.transactions} if decision else set()
        try:
            for listing in list_transactions(self._admin):
                name = listing.transactional_id
                is_ours = name.startswith(batch.prefix) and name not in decided
                if is_ours and listing.state == _OPEN_STATE:
                    terminate_transaction(self._admin, name)
        except HeadraceError as error:
            _log.warning(
                "transactions of earlier attempts may stay open until their time-out: %s", error
            )


_sinks: dict[tuple[str, str, float], TransactionalSink] = {}


def sink_for(bootstrap_servers: str, client_id: str, give_up_after_s: float) -> TransactionalSink:
    """The connections of this process, kept between batches: Spark reuses its Python processes."""
    place = (bootstrap_servers, client_id, give_up_after_s)
    if place not in _sinks:
        _sinks[place] = TransactionalSink(*place)
    return _sinks[place]


def drop_sink(sink: TransactionalSink) -> None:
    """Forget connections after an error: an answer may still be under way on one of them."""
    for place, known in list(_sinks.items()):
        if known is sink:
            del _sinks[place]
    sink.close()
