"""A transactional producer's requests in short form, for the cases about transactions."""

from dataclasses import dataclass

from headrace.records.batch_builder import BatchOptions
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_offsets import ListOffsetsRequest
from headrace.wire.messages.produce import ProduceRequest
from tests.differential.plain import Plain
from tests.differential.requests import LATEST, batch, fetch, list_offsets, produce
from tests.differential.script import Script

TRANSACTION = 1  # key type of FindCoordinator
TV1, TV2 = 4, 5  # versions of EndTxn
READY, UNKNOWN_TOPIC = 0, 3


@dataclass(frozen=True, slots=True)
class TxnProducer:
    id: str
    producer_id: int
    epoch: int

    def at(self, epoch: int) -> "TxnProducer":
        return TxnProducer(self.id, self.producer_id, epoch)


def init(
    transactional_id: str | None,
    timeout_ms: int = 60_000,
    *,
    producer_id: int = -1,
    epoch: int = -1,
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def new_producer(script: Script, stem: str = "t") -> TxnProducer:
    """A producer that may begin a transaction. Preparing; not compared."""
    name = coordinated(script, stem)
    answer = script.wait_for(init(name), 4, lambda a: a.error_code == READY)
    return TxnProducer(name, answer.producer_id, answer.producer_epoch)


def coordinated(script: Script, stem: str) -> str:
    """A transactional id whose coordinator is ready."""
    name = script.name(stem)
    request = FindCoordinatorRequest(key=name, key_type=TRANSACTION)
    script.wait_for(request, 3, lambda a: a.error_code == READY)
    script.wait_for(
        DescribeTransactionsRequest(transactional_ids=[name]),
        0,
        lambda a: a.transaction_states[0].error_code not in (14, 15, 16),
    )
    return name


def add(producer: TxnProducer, topic: str, *partitions: int) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions or (0,))],
    )


def add_for(
    producer: TxnProducer, topic: str, *partitions: int, verify_only: bool
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions or (0,))],
    )


def end_txn(producer: TxnProducer, *, commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )


def write(
    producer: TxnProducer,
    topic: str,
    value: bytes = b"x",
    *,
    sequence: int = 0,
    transactional_id: str | None = None,
    transactional: bool = True,
) -> ProduceRequest:
    options = BatchOptions(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    request = produce(topic, batch(value, options=options))
    request.transactional_id = transactional_id or producer.id
    return request


def _is_at_rest(answer: DescribeTransactionsResponse) -> bool:
    return not answer.transaction_states[0].transaction_state.startswith("Prepare")


def wait_for_markers(script: Script, producer: TxnProducer) -> None:
    """Wait until no marker is missing."""
    script.wait_for(DescribeTransactionsRequest(transactional_ids=[producer.id]), 0, _is_at_rest)


def describe(script: Script, *transactional_ids: str) -> None:
    def without_time(answer: Plain) -> Plain:
        for state in answer["transaction_states"]:
            for topic in state["topics"]:
                topic["partitions"] = sorted(topic["partitions"])
            state["transaction_start_time_ms"] = state["transaction_start_time_ms"] >= 0
        return answer

    request = DescribeTransactionsRequest(transactional_ids=transactional_ids)
    script.ask(request, 0, pick=without_time)


def without_times(answer: Plain) -> Plain:
    """The times of markers are the moment's."""
    for found in answer["responses"]:
        for part in found["partitions"]:
            for one in part["records"] or ():
                for name in ("base_timestamp", "max_timestamp"):
                    one.pop(name, None)
                one["records"] = [[*record[:1], *record[2:]] for record in one["records"]]
    return answer


def read(script: Script, topic: str) -> None:
    """Fetch as a reader of all and of committed data."""
    for isolation in (0, 1):
        request = fetch(topic, 0)
        request.isolation_level = isolation
        script.ask(request, 11, pick=without_times)


def ends(script: Script, topic: str) -> None:
    """The last stable offset and the high watermark."""
    for isolation in (0, 1):
        request: ListOffsetsRequest = list_offsets(topic, LATEST)
        request.isolation_level = isolation
        script.ask(request, 7)
