"""A transactional producer and its readers of a simulated cluster: begin, write to some partitions, commit or abort, again and again.

What is uncertain is asked again, as real clients do; a producer that is fenced, because its transaction ran out of time, takes its
transactional id anew. Some transactions are left open: their coordinator aborts them when their time is up.
"""

from typing import Final

from headrace.client.exchange import R
from headrace.ids import TopicIdPartition
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.testing.simulation.consumer import SimulatedConsumer
from headrace.testing.simulation.story import Violation
from headrace.testing.simulation.transaction_truth import (
    Fate,
    SimulatedTransaction,
    TransactionTruth,
)
from headrace.testing.simulation.wire_client import (
    ClientAround,
    KnownTopic,
    Unanswered,
    WireClient,
)
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import Request
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.fetch import PartitionData
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

_TRANSACTION: Final = 1  # key type of FindCoordinator
_INIT_VERSION: Final = 4
_ADD_VERSION: Final = 3
_PRODUCE_BY_NAME: Final = 11
_PRODUCE_BY_ID: Final = 13
_TRANSACTION_TIMEOUT_MS: Final = 4_000
_PRODUCE_TIMEOUT_MS: Final = 1_500
_PAUSE_S: Final = 0.15
_MOST_PARTITIONS: Final = 3
_FENCED: Final = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    )
)


class TransactionLost(Exception):
    """This transaction cannot go on; the transactional id has to be taken anew."""


class SimulatedTransactionalProducer:
    """One transactional id, under either version of the protocol: with the second one each end raises the epoch (KIP-890)."""

    def __init__(
        self, around: ClientAround, truth: TransactionTruth, number: int, topic: str
    ) -> None:
        self._around = around
        self._truth = truth
        self._client = WireClient(around, f"transactional-{number}")
        self._topic = topic
        self._has_second_version = self._client.chance.random() < 0.5
        self._coordinator = -1
        self._producer_id = -1
        self._producer_epoch = -1
        self._sequences: dict[TopicIdPartition, int] = {}
        self._count = 0
        self.is_busy = False

    @property
    def name(self) -> str:
        """As the story calls it, and its transactional id."""
        return self._client.name

    async def run(self) -> None:
        """Transactions until the run is over."""
        while not self._around.is_over:
            known = None if self._around.is_resting else await self._client.topic(self._topic)
            if known is not None and known.partitions:
                self.is_busy = True
                try:
                    await self._transact(known)
                except TransactionLost:
                    self._producer_id = -1
                self.is_busy = False
            await self._client.pause(_PAUSE_S)
        self._client.close()

    async def _transact(self, known: KnownTopic) -> None:
        if self._producer_id < 0:
            await self._initialise()
        chance = self._client.chance
        count = min(len(known.partitions), chance.randint(1, _MOST_PARTITIONS))
        partitions = chance.sample(sorted(known.partitions), count)
        self._count += 1
        transaction = SimulatedTransaction(f"{self.name}/{self._count}")
        self._truth.transactions.append(transaction)
        if not self._has_second_version:
            await self._add(partitions)
        for index in partitions:
            for _ in range(chance.randint(1, 2)):
                await self._produce(transaction, known, index)
        if chance.random() < 0.1:
            self._producer_id = -1  # as after a crash: the coordinator ends it
            return
        await self._end(transaction, is_commit=chance.random() < 0.7)

    # ---- the coordinator

    async def _initialise(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        )
        while True:
            answer = await self._ask_coordinator(request, _INIT_VERSION)
            error = ErrorCode.of(answer.error_code)
            if error is ErrorCode.NONE:
                self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
                self._sequences.clear()
                return
            self._expect_retriable("InitProducerId", error)
            await self._client.pause(_PAUSE_S)

    async def _add(self, partitions: list[int]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self._topic, partitions=partitions)],
        )
        while True:
            answer = await self._ask_coordinator(request, _ADD_VERSION)
            results = answer.results_by_topic_v3_and_below[0].results_by_partition
            errors = {ErrorCode.of(each.partition_error_code) for each in results}
            if errors == {ErrorCode.NONE}:
                return
            for error in errors - {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED}:
                self._expect_retriable("AddPartitionsToTxn", error)
            await self._client.pause(_PAUSE_S)

    async def _end(self, transaction: SimulatedTransaction, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            committed=is_commit,
        )
        if is_commit:
            transaction.fate = Fate.UNCERTAIN
        while True:
            answer = await self._ask_coordinator(request, 5 if self._has_second_version else 3)
            error = ErrorCode.of(answer.error_code)
            if error is ErrorCode.NONE:
                break
            self._expect_retriable("EndTxn", error)
            await self._client.pause(_PAUSE_S)
        if is_commit:
            transaction.fate = Fate.COMMITTED
        if self._has_second_version:
            self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    def _expect_retriable(self, what: str, error: ErrorCode) -> None:
        if error in _FENCED:
            self._around.story.tell(f"{self.name} is answered {error.name} to {what}")
            raise TransactionLost(error.name)
        if not error.retriable and error is not ErrorCode.CONCURRENT_TRANSACTIONS:
            raise Violation(f"no unexpected error: {self.name}: {what} is answered {error.name}")
        if error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._coordinator = -1

    async def _ask_coordinator(self, request: Request[R], version: int) -> R:
        """Until there is an answer: what is asked here may be asked twice."""
        while True:
            try:
                if self._coordinator < 0:
                    await self._find_coordinator()
                if self._coordinator >= 0:
                    return await self._client.call(self._coordinator, request, version)
            except Unanswered:
                self._coordinator = -1
            await self._client.pause(_PAUSE_S)

    async def _find_coordinator(self) -> None:
        request = FindCoordinatorRequest(
            key=self.name, key_type=_TRANSACTION, coordinator_keys=[self.name]
        )
        found = (await self._client.call_any(request, 4)).coordinators[0]
        self._coordinator = -1 if found.error_code else found.node_id

    # ---- partitions

    async def _produce(
        self, transaction: SimulatedTransaction, known: KnownTopic, index: int
    ) -> None:
        where = TopicIdPartition(known.topic_id, index)
        data = self._build(where)
        while True:
            error = await self._send(known, index, data)
            if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                transaction.batches.setdefault(where, []).append(data)
                return
            if error is not None and error is not ErrorCode.UNKNOWN_TOPIC_ID:
                self._expect_retriable("Produce", error)
            await self._client.pause(_PAUSE_S)
            await self._client.learn(self._topic)

    def _build(self, where: TopicIdPartition) -> bytes:
        size = self._client.chance.choice((1, 1, 3))
        sequence = self._sequences.get(where, 0)
        self._sequences[where] = sequence + size
        value = b"%s-%d-%d" % (self.name.encode(), self._count, sequence)
        options = BatchOptions(
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        pairs = [(value, value)] * size
        return bytes(build_batch(records_at(0, self._around.wall_clock_ms(), pairs), options))

    async def _send(self, known: KnownTopic, index: int, data: bytes) -> ErrorCode | None:
        newest = await self._client.topic(self._topic) or known
        leader = newest.partitions[index].leader
        if leader < 0:
            return None
        partition = PartitionProduceData(index=index, records=data)
        topic = TopicProduceData(
            name=self._topic, topic_id=known.topic_id, partition_data=[partition]
        )
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            topic_data=[topic],
        )
        version = _PRODUCE_BY_ID if self._has_second_version else _PRODUCE_BY_NAME
        try:
            answer = await self._client.call(leader, request, version)
        except Unanswered:
            return None
        return ErrorCode.of(answer.responses[0].partition_responses[0].error_code)


class CommittedReader(SimulatedConsumer):
    """A reader of committed data that drops what was aborted, and looks at what is left."""

    def __init__(
        self, around: ClientAround, truth: TransactionTruth, number: int, topic: str, partition: int
    ) -> None:
        super().__init__(around, number, topic, partition, reads_committed=True)
        self._transactions = truth

    async def _take(self, data: PartitionData) -> None:
        if self._where is not None and data.records and not data.error_code:
            aborted = list(data.aborted_transactions or ())
            self._transactions.check_served(self._where, bytes(data.records), aborted)
        await super()._take(data)
