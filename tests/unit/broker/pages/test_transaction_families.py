from headrace.broker.pages.transaction_families import transaction_families
from headrace.coordinator.transaction.state import Status


class Counts:
    transactions_by_status = {Status.ONGOING: 3}
    without_leader = 2


def test_states_and_markers_without_a_leader() -> None:
    counts = Counts()
    lines = list(transaction_families(counts, counts))
    text = "\n".join(line.strip() for line in lines)
    assert 'headrace_transactional_ids{state="Ongoing"} 3' in text
    assert 'headrace_transactional_ids{state="CompleteAbort"} 0' in text
    assert (
        "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize 2"
        in text
    )
