"""Asks transaction coordinators whether partitions belong to a producer's open transaction, or has them added to it (KIP-890).

Owns a connection to each broker that coordinates transactions, with one request under way. Verifications that are asked for meanwhile
go together in the next request. Appending after a positive answer is left to the callers.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.request_metrics import ApiTimes
from headrace.client.async_connection import AsyncConnection, Connect
from headrace.client.exchange import Disconnected, VersionNotOffered
from headrace.coordinator.partitioning import coordinator_partition
from headrace.ids import TopicPartition
from headrace.internal_topics import TRANSACTION_STATE
from headrace.settings.live_settings import LiveSettings
from headrace.wire.api_keys import ApiKey
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_logger = logging.getLogger(__name__)

_FIRST_BATCHED: Final = 4
_RETRIED_BY_PRODUCE: Final = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class TxnSupport(Enum):
    """What a client knows of transactions, by the version of its request."""

    BASIC = "the partition was added by the client"
    ABORTABLE = "the same, and TRANSACTION_ABORTABLE is understood"
    IMPLICIT = "the partition is added by the broker (transaction version 2)"


def of_produce(version: int) -> TxnSupport:
    """What the sender of a Produce knows."""
    if version > 11:
        return TxnSupport.IMPLICIT
    return TxnSupport.ABORTABLE if version == 11 else TxnSupport.BASIC


def of_offset_commit(version: int) -> TxnSupport:
    """What the sender of a TxnOffsetCommit knows."""
    if version > 4:
        return TxnSupport.IMPLICIT
    return TxnSupport.ABORTABLE if version == 4 else TxnSupport.BASIC


def produce_error(error: ErrorCode, support: TxnSupport) -> ErrorCode:
    """How a refusal of the coordinator looks to a producer: older ones retry after NOT_ENOUGH_REPLICAS without new metadata."""
    if error in _RETRIED_BY_PRODUCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TxnSupport.IMPLICIT:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return _known_to_all(error, support)


def offset_commit_error(error: ErrorCode, support: TxnSupport) -> ErrorCode:
    """How a refusal of the coordinator looks to a consumer's producer: it retries these at the same group coordinator."""
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TxnSupport.IMPLICIT:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if error is ErrorCode.NOT_COORDINATOR:  # of the transaction: the client asked the right broker
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return _known_to_all(error, support)


def _known_to_all(error: ErrorCode, support: TxnSupport) -> ErrorCode:
    match error:
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case ErrorCode.TRANSACTION_ABORTABLE if support is TxnSupport.BASIC:
            return ErrorCode.INVALID_TXN_STATE
        case ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return (
                ErrorCode.INVALID_TXN_STATE
            )  # it is this broker that lacks a right, not the client
        case _:
            return error


class TxnProducer(NamedTuple):
    """Who writes: a transactional id with the producer id and epoch that its batches carry."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


Errors = Mapping[TopicPartition, ErrorCode]
"""The partitions that may not be written to, and why."""


class _Question(NamedTuple):
    producer: TxnProducer
    partitions: tuple[TopicPartition, ...]
    is_implicit: bool
    answer: "asyncio.Future[Errors]"

    def refuse(self, error: ErrorCode) -> None:
        if not self.answer.done():
            self.answer.set_result(dict.fromkeys(self.partitions, error))


class VerificationCounts:
    """What was asked since the start."""

    __slots__ = ("failures", "times")

    def __init__(self) -> None:
        self.failures = 0  # partitions
        self.times = ApiTimes()


class TxnVerification:
    """One event loop owns it."""

    def __init__(
        self,
        cluster: ClusterView,
        live_settings: LiveSettings,
        connect: Connect,
        monotonic: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._cluster = cluster
        self._live_settings = live_settings
        self._connect = connect
        self._monotonic = monotonic
        self._spawn = spawn
        self._askers: dict[int, _Asker] = {}
        self.counts = VerificationCounts()

    def is_needed(self, support: TxnSupport) -> bool:
        """Whether a transaction that is not open in a partition is verified before it writes there."""
        # A partition that nobody adds would never get a marker.
        is_on = self._live_settings.current.transaction_partition_verification_enable
        return is_on or support is TxnSupport.IMPLICIT

    async def verify(
        self,
        producer: TxnProducer,
        partitions: Iterable[TopicPartition],
        support: TxnSupport,
        begin: Callable[[], None],
    ) -> Errors:
        """Which of the partitions may not be written to, in the coordinator's words.

        A transaction that is still ending is waited for, for a moment, if the coordinator has to add the partitions to the next one.
        `begin` is called before each question: the marker that is waited for makes a verification void that was begun before it.
        """
        asked, is_implicit = tuple(partitions), support is TxnSupport.IMPLICIT
        settings = self._live_settings.current
        started = self._monotonic()
        longest_s = settings.add_partitions_to_txn_retry_backoff_max_ms / 1000
        while True:
            begin()
            errors = await self._ask(producer, asked, is_implicit=is_implicit)
            is_late = self._monotonic() - started >= longest_s
            is_busy = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
            if not (is_implicit and is_busy) or is_late:
                break
            await asyncio.sleep(settings.add_partitions_to_txn_retry_backoff_ms / 1000)
        self.counts.failures += len(errors)
        self.counts.times.add(self._monotonic() - started)
        return errors

    async def _ask(
        self, producer: TxnProducer, partitions: tuple[TopicPartition, ...], *, is_implicit: bool
    ) -> Errors:
        coordinator = self._coordinator_of(producer.transactional_id)
        if coordinator is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        asker = self._askers.get(coordinator)
        if asker is None:
            asker = self._askers[coordinator] = _Asker(
                coordinator, self._cluster, self._live_settings, self._connect
            )
        answer: asyncio.Future[Errors] = asyncio.get_running_loop().create_future()
        asker.waiting.append(_Question(producer, partitions, is_implicit, answer))
        if not asker.is_busy:
            asker.is_busy = True
            self._spawn(asker.run())
        return await answer

    def _coordinator_of(self, transactional_id: str) -> int | None:
        topic = self._cluster.state.topics.get(TRANSACTION_STATE)
        if topic is None:
            return None
        index = coordinator_partition(transactional_id, len(topic.partitions))
        leader = topic.partitions[index].leader
        return leader if leader in self._cluster.state.brokers else None


class _Asker:
    """The questions to one broker, and the connection to it."""

    def __init__(
        self, broker_id: int, cluster: ClusterView, live_settings: LiveSettings, connect: Connect
    ) -> None:
        self._broker_id = broker_id
        self._cluster = cluster
        self._live_settings = live_settings
        self._connect = connect
        self._connection: AsyncConnection | None = None
        self.waiting: list[_Question] = []
        self.is_busy = False

    async def run(self) -> None:
        """Send the waiting verifications, one request after the other, until none waits."""
        try:
            while self.waiting:
                await self._ask(self._take())
        finally:
            self.is_busy = False
            waiting, self.waiting = self.waiting, []
            for question in waiting:
                question.refuse(ErrorCode.NETWORK_EXCEPTION)

    def _take(self) -> dict[str, _Question]:
        """The next questions, one for each transactional id, which is the key of their answers."""
        taken: dict[str, _Question] = {}
        left: list[_Question] = []
        for question in self.waiting:
            is_first = taken.setdefault(question.producer.transactional_id, question) is question
            if not is_first:
                left.append(question)
        self.waiting = left
        return taken

    async def _ask(self, questions: Mapping[str, _Question]) -> None:
        request = AddPartitionsToTxnRequest(
            transactions=[_transaction(question) for question in questions.values()]
        )
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            async with asyncio.timeout(self._live_settings.current.request_timeout_ms / 1000):
                connection = await self._open_connection()
                answer = await connection.send(request, await _version(connection))
            if answer.error_code:
                error = ErrorCode.of(answer.error_code)
            else:
                _tell(questions, answer)
        except (Disconnected, TimeoutError):
            self._drop_connection()
            error = ErrorCode.NETWORK_EXCEPTION
        except VersionNotOffered:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        except Exception:
            _logger.exception("the verification of transactions by broker %d", self._broker_id)
        finally:
            for question in questions.values():
                question.refuse(error)  # unless it was answered

    async def _open_connection(self) -> AsyncConnection:
        connection = self._connection
        if connection is None or not connection.is_open:
            broker = self._cluster.state.brokers.get(self._broker_id)
            listener = self._live_settings.current.inter_broker_listener.name
            endpoint = None if broker is None else broker.endpoint(listener)
            if endpoint is None:
                raise Disconnected(f"it is not known where broker {self._broker_id} is")
            client_id = f"txn-verification-{self._cluster.broker_id}"
            connection = await self._connect(endpoint.host, endpoint.port, client_id=client_id)
            self._connection = connection
        return connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()


async def _version(connection: AsyncConnection) -> int:
    offered = await connection.negotiate()
    version = min(
        offered.get(ApiKey.ADD_PARTITIONS_TO_TXN, (0, -1))[1], AddPartitionsToTxnRequest.VERSIONS[1]
    )
    if version < _FIRST_BATCHED:
        raise VersionNotOffered("a broker that verifies no transactions")
    return version


def _transaction(question: _Question) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, index in question.partitions:
        topics.setdefault(topic, []).append(index)
    producer = question.producer
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=not question.is_implicit,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ],
    )


def _tell(questions: Mapping[str, _Question], answer: AddPartitionsToTxnResponse) -> None:
    """Hand out the answers. A partition that an answer leaves out is not verified."""
    for result in answer.results_by_transaction:
        question = questions.get(result.transactional_id)
        if question is None or question.answer.done():
            continue
        told = {
            TopicPartition(topic.name, partition.partition_index): partition.partition_error_code
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        codes = (
            (each, ErrorCode.of(told.get(each, ErrorCode.UNKNOWN_SERVER_ERROR)))
            for each in question.partitions
        )
        question.answer.set_result({each: code for each, code in codes if code})
