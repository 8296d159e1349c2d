"""Transactions of producers, asked of their coordinator: begin, add partitions and offsets, commit or abort. Blocking.

It owns which broker coordinates a transactional id or a group, and when a request is repeated: after lost connections and errors
that pass (`retries`), for `give_up_after_s`. It writes no records: that is `idempotent_producer`. What a coordinator refuses for
good is a value, because the caller decides whether a refusal loses anything. A transaction is named by its transactional id,
producer id and epoch alone, so that it can be ended by another process than the one that wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.exchange import Disconnected, api_versions_request
from headrace.client.retries import passes_for_writer
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    TransactionState,
)
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.refusal import Refusal

TRANSACTION_VERSION: Final = "transaction.version"
IMPLICIT_ADD_VERSION: Final = 2  # from this transaction.version on, Produce adds partitions itself
LAST_PRODUCE_WITHOUT_ADD: Final = 11
_GROUP_KEY: Final = 0
_TRANSACTION_KEY: Final = 1
_LAST_ADD_OF_ONE: Final = 3  # AddPartitionsToTxn 4 and later is for brokers
_LAST_END_KEEPING_EPOCH: Final = 4
_LAST_OFFSETS_WITHOUT_ADD: Final = 4
_CONCURRENT_PAUSE_S: Final = 0.02  # as Kafka's producer waits for markers that are being written


class TransactionFailed(HeadraceError):
    """A transaction could not be begun, or its outcome could not be confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A producer's transaction: what its records carry, and what ends it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    version: int  # transaction.version of the cluster when it was begun

    @property
    def adds_implicitly(self) -> bool:
        """Whether a partition is added by the first Produce for it."""
        return self.version >= IMPLICIT_ADD_VERSION


class TransactionCoordinator:
    """Asks the coordinators of one cluster. The caller closes `metadata`."""

    def __init__(self, metadata: ClusterMetadata[Any], *, give_up_after_s: float = 120.0) -> None:
        self._metadata = metadata
        self._give_up_after_s = give_up_after_s
        self._coordinators: dict[tuple[int, str], int] = {}
        self._version: int | None = None

    def begin(self, transactional_id: str, *, timeout_ms: int) -> OpenTransaction | Refusal:
        """Take a transactional id: whatever is open under it is aborted, and its last producer is fenced."""
        try:
            version = self._transaction_version()
        except Disconnected as lost:
            return Refusal(ErrorCode.NETWORK_EXCEPTION, str(lost))
        answer = self._ask(
            _TRANSACTION_KEY,
            transactional_id,
            InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
            ),
            lambda found: found.error_code,
        )
        if isinstance(answer, Refusal):
            return answer
        return OpenTransaction(
            transactional_id=transactional_id,
            producer_id=answer.producer_id,
            producer_epoch=answer.producer_epoch,
            version=version,
        )

    def add_partitions(
        self, transaction: OpenTransaction, partitions: Iterable[TopicPartition]
    ) -> Refusal | None:
        """Add partitions before records are produced to them. Needed where they are not added implicitly."""
        topics = [
            AddPartitionsToTxnTopic(name=name, partitions=[each.partition for each in of_topic])
            for name, of_topic in groupby(sorted(partitions), key=lambda each: each.topic)
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transaction.transactional_id,
            v3_and_below_producer_id=transaction.producer_id,
            v3_and_below_producer_epoch=transaction.producer_epoch,
            v3_and_below_topics=topics,
        )
        answer = self._ask(
            _TRANSACTION_KEY,
            transaction.transactional_id,
            request,
            lambda found: _worst(
                each.partition_error_code
                for topic in found.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ),
            at_most=_LAST_ADD_OF_ONE,
        )
        return answer if isinstance(answer, Refusal) else None

    def end(self, transaction: OpenTransaction, *, commit: bool) -> Refusal | None:
        """Commit or abort, and return when the coordinator confirms the outcome. To ask again for the same outcome is safe."""
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            committed=commit,
        )
        answer = self._ask(
            _TRANSACTION_KEY,
            transaction.transactional_id,
            request,
            lambda found: found.error_code,
            at_most=None if transaction.adds_implicitly else _LAST_END_KEEPING_EPOCH,
        )
        return answer if isinstance(answer, Refusal) else None

    def commit_offsets(
        self, transaction: OpenTransaction, group_id: str, offsets: Mapping[TopicPartition, int]
    ) -> Refusal | None:
        """Make offsets of a group without members part of a transaction."""
        if not transaction.adds_implicitly:
            added = self._ask(
                _TRANSACTION_KEY,
                transaction.transactional_id,
                AddOffsetsToTxnRequest(
                    transactional_id=transaction.transactional_id,
                    producer_id=transaction.producer_id,
                    producer_epoch=transaction.producer_epoch,
                    group_id=group_id,
                ),
                lambda found: found.error_code,
            )
            if isinstance(added, Refusal):
                return added
        answer = self._ask(
            _GROUP_KEY,
            group_id,
            _offsets_request(transaction, group_id, offsets),
            lambda found: _worst(
                each.error_code for topic in found.topics for each in topic.partitions
            ),
            at_most=None if transaction.adds_implicitly else _LAST_OFFSETS_WITHOUT_ADD,
        )
        return answer if isinstance(answer, Refusal) else None

    def describe(self, transactional_id: str) -> TransactionState | Refusal:
        """The state of a transactional id."""
        answer = self._ask(
            _TRANSACTION_KEY,
            transactional_id,
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            lambda found: found.transaction_states[0].error_code,
        )
        if isinstance(answer, Refusal):
            return answer
        state: TransactionState = answer.transaction_states[0]
        return state

    def is_open(self, transaction: OpenTransaction) -> bool | Refusal:
        """Whether a transaction can still be committed: it is neither ended nor fenced."""
        state = self.describe(transaction.transactional_id)
        if isinstance(state, Refusal):
            gone = state.error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return False if gone else state
        return (state.transaction_state, state.producer_id, state.producer_epoch) == (
            "Ongoing",
            transaction.producer_id,
            transaction.producer_epoch,
        )

    # Finding and asking again.

    def _transaction_version(self) -> int:
        """The cluster's finalized transaction.version, asked for once. 1 where it is not told."""
        if self._version is None:
            answer = self._metadata.ask_any(api_versions_request())
            levels = {each.name: each.max_version_level for each in answer.finalized_features}
            self._version = levels.get(TRANSACTION_VERSION, 1)
        return self._version

    def _ask(
        self,
        key_type: int,
        key: str,
        request: Any,
        error_of: Callable[[Any], int],
        *,
        at_most: int | None = None,
    ) -> Any:
        """The answer without an error, or the refusal."""
        patience = self._metadata.time.patience(self._give_up_after_s)
        while True:
            try:
                answer = self._ask_once(key_type, key, request, at_most)
                error = ErrorCode.of(
                    answer.error_code if isinstance(answer, Refusal) else error_of(answer)
                )
                if error is ErrorCode.NONE:
                    return answer
                refusal = answer if isinstance(answer, Refusal) else Refusal(error)
            except Disconnected as lost:
                error, refusal = None, Refusal(ErrorCode.NETWORK_EXCEPTION, str(lost))
            if (error is not None and not passes_for_writer(error)) or patience.is_over():
                return refusal
            if error is ErrorCode.CONCURRENT_TRANSACTIONS:
                self._metadata.time.sleep(_CONCURRENT_PAUSE_S)
                continue
            self._coordinators.pop((key_type, key), None)
            patience.pause()
            self._metadata.forget_cluster()

    def _ask_once(self, key_type: int, key: str, request: Any, at_most: int | None) -> Any:
        broker_id = self._coordinators.get((key_type, key))
        if broker_id is None:
            find = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
            answer = self._metadata.ask_any(find)
            found = answer.coordinators[0] if answer.coordinators else answer
            if found.error_code:
                return Refusal(ErrorCode.of(found.error_code), found.error_message)
            broker_id = self._coordinators[key_type, key] = found.node_id
        self._metadata.cluster()  # so that the broker's address is known
        return self._metadata.ask(broker_id, request, at_most=at_most)


def _offsets_request(
    transaction: OpenTransaction, group_id: str, offsets: Mapping[TopicPartition, int]
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=transaction.transactional_id,
        group_id=group_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=each.partition, committed_offset=offsets[each]
                    )
                    for each in of_topic
                ],
            )
            for name, of_topic in groupby(sorted(offsets), key=lambda each: each.topic)
        ],
    )


def _worst(codes: Iterable[int]) -> int:
    """One error for several partitions: one that does not pass, else any."""
    found: Sequence[int] = [code for code in codes if code]
    lasting = [code for code in found if not passes_for_writer(ErrorCode.of(code))]
    return (lasting or found or [0])[0]
