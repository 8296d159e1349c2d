"""Which open transactions hang."""

from headrace.client.admin.transactions import OpenTransaction, hanging_among
from headrace.ids import TopicPartition
from headrace.wire.messages.describe_producers import ProducerState

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def open_at(partition: TopicPartition, producer_id: int) -> OpenTransaction:
    return OpenTransaction(
        partition=partition,
        producer=ProducerState(producer_id=producer_id, current_txn_start_offset=3),
    )


def test_what_the_coordinator_will_end_does_not_hang() -> None:
    candidates = [open_at(P0, 1), open_at(P1, 1), open_at(P0, 2), open_at(P0, 3)]
    # Producer 1 is expected in P0 only, 2 has no transaction, and nobody knows 3.
    expected = {1: [P0], 2: []}
    assert hanging_among(candidates, expected) == candidates[1:]
