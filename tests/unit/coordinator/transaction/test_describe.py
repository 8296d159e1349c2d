from headrace.coordinator.transaction.state import Status
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_transactions import TopicData, TransactionState
from tests.unit.coordinator.transaction.transaction_story import P0, P1, START_MS, Story


def test_a_transaction_is_described_with_its_partitions() -> None:
    story = Story()
    story.begin(P1, TopicPartition("audit", 7), P0)
    assert story.describe() == TransactionState(
        transactional_id="t",
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=START_MS,
        producer_id=1_001,
        producer_epoch=0,
        topics=[
            TopicData(topic="audit", partitions=[7]),
            TopicData(topic="orders", partitions=[0, 1]),
        ],
    )


def test_an_unknown_and_an_empty_id() -> None:
    story = Story()
    unknown = story.describe("nobody")
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert unknown.transactional_id == "nobody"
    assert story.describe("").error_code == ErrorCode.INVALID_REQUEST


def test_what_is_listed() -> None:
    story = Story()
    open_since_start = story.begin(transactional_id="a1")
    story.sleep(5_000)
    ended = story.begin(transactional_id="a2")
    story.end(ended, transactional_id="a2")
    story.initialize(transactional_id="b")

    def ids(*states: str, **filters: object) -> list[str]:
        return [each.transactional_id for each in story.list_all(*states, **filters)]  # type: ignore[arg-type]

    assert ids() == ["a1", "a2", "b"]
    assert ids("Ongoing") == ["a1"]
    assert ids("PrepareCommit", "Empty") == ["a2", "b"]
    assert ids("NoSuchState") == []
    assert ids(producer_ids=(open_since_start.producer_id,)) == ["a1"]
    # A transactional id without a transaction has no beginning, which Kafka takes for a very early one.
    assert ids(longer_than_ms=4_999) == ["a1", "b"]
    assert ids(longer_than_ms=5_000) == ["b"]
    assert ids(containing="a") == ["a1", "a2"]
    (listed,) = story.list_all("Ongoing")
    assert (listed.producer_id, listed.transaction_state) == (1_001, Status.ONGOING.value)
