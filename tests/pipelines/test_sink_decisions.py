"""Steps of the exactly-once sink on a real broker, with a crash between any two of them: no Spark, each process a `TransactionalSink`."""

import time
from collections.abc import Callable, Iterator

import pytest

from headrace.client.admin.admin import Admin
from headrace.client.admin.transactions import describe_transaction
from headrace.client.transaction_coordinator import OpenTransaction, TransactionFailed
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.pipelines.writing.decisions import Decision, WrongBatch
from headrace.pipelines.writing.exactly_once import BatchIdentity, TransactionalSink
from headrace.testing.embedded_broker import EmbeddedBroker
from tests.pipelines.sink_process import write_record
from tests.support.committed_records import committed_values
from tests.support.spark_topics import Topics

LONG_MS = 60_000


class Process:
    """A process of a query: it writes tasks and commits batches."""

    def __init__(self, bootstrap_servers: str, sink_id: str, run_id: str) -> None:
        self.sink = TransactionalSink(bootstrap_servers, "test", 20.0)
        self._sink_id, self._run_id = sink_id, run_id

    def batch(self, number: int) -> BatchIdentity:
        return BatchIdentity(
            sink_id=self._sink_id, batch_id=number, run_id=self._run_id, older_is_done=False
        )

    def task(
        self,
        topic: str,
        number: int,
        value: str,
        *,
        task: int = 0,
        attempt: int = 0,
        timeout_ms: int = LONG_MS,
    ) -> OpenTransaction | None:
        """Write one record as a task does; None where the batch was decided."""
        batch = self.batch(number)
        if self.sink.is_decided(batch):
            return None
        transaction = self.sink.begin(batch.transactional_id(task, attempt), timeout_ms)
        write_record(self.sink, transaction, TopicPartition(topic, task % 2), value)
        return transaction

    def commit(
        self,
        number: int,
        *transactions: OpenTransaction | None,
        fail_on_data_loss: bool = True,
        has_failed_attempts: bool = False,
    ) -> None:
        self.sink.commit(
            self.batch(number),
            [each for each in transactions if each is not None],
            fail_on_data_loss=fail_on_data_loss,
            has_failed_attempts=has_failed_attempts,
        )

    def decide_only(self, number: int, *transactions: OpenTransaction | None) -> None:
        """The commit, killed behind the decision."""
        self.sink.topic.create()
        taken = self.sink.topic.take(self._sink_id)
        found = tuple(each for each in transactions if each is not None)
        self.sink.topic.decide(self._sink_id, Decision(number, found), taken)


Start = Callable[[str], Process]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    with EmbeddedBroker(settings) as running:
        yield running


@pytest.fixture
def topic(topics: Topics) -> str:
    return topics.create("out", 2)


@pytest.fixture
def start(broker: EmbeddedBroker, topic: str) -> Iterator[Start]:
    """Starts a process of the query, with a run of its own."""
    started = []

    def process(run_id: str) -> Process:
        made = Process(broker.bootstrap_servers, f"query-of-{topic}", run_id)
        started.append(made)
        return made

    yield process
    for each in started:
        each.sink.close()


@pytest.fixture
def values(broker: EmbeddedBroker, topic: str) -> Callable[[], list[bytes | None]]:
    def read() -> list[bytes | None]:
        return committed_values(broker.bootstrap_servers, topic, 2)

    return read


def await_values(values: Callable[[], list[bytes | None]], *expected: str) -> None:
    """Markers are written after EndTxn is answered."""
    deadline = time.monotonic() + 20
    wanted = sorted(each.encode() for each in expected)
    while sorted(each or b"" for each in values()) != wanted:
        assert time.monotonic() < deadline, (values(), wanted)
        time.sleep(0.05)


Values = Callable[[], list[bytes | None]]


def test_batches_one_after_the_other(start: Start, topic: str, values: Values) -> None:
    run = start("run-1")
    for number in range(5):
        written = [run.task(topic, number, f"{number}-{task}", task=task) for task in range(3)]
        run.commit(number, *written)
    await_values(values, *(f"{number}-{task}" for number in range(5) for task in range(3)))


def test_the_protocol_before_transaction_version_2(
    start: Start, topic: str, values: Values
) -> None:
    """Partitions are added by the client, and the epoch stays when a transaction ends."""
    run = start("run-1")
    run.sink.coordinator._version = 1
    for number in range(3):
        written = [run.task(topic, number, f"{number}-{task}", task=task) for task in range(2)]
        run.commit(number, *written)
        run.commit(number, *written)
    await_values(values, *(f"{number}-{task}" for number in range(3) for task in range(2)))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_progress_of_a_group_in_a_transaction(
    start: Start, topic: str, topics: Topics, version: int, commit: bool
) -> None:
    coordinator = start("run-1").sink.coordinator
    coordinator._version = version
    group = f"group-of-{topic}"
    transaction = coordinator.begin(f"progress-of-{topic}", timeout_ms=LONG_MS)
    assert isinstance(transaction, OpenTransaction)
    offsets = {TopicPartition(topic, 0): 7, TopicPartition(topic, 1): 9}
    assert coordinator.commit_offsets(transaction, group, offsets) is None
    assert coordinator.end(transaction, commit=commit) is None
    expected = {0: 7, 1: 9} if commit else {}
    deadline = time.monotonic() + 20
    while topics.committed(group, topic) != expected:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_before_the_decision(start: Start, topic: str, values: Values) -> None:
    """The transactions that were left open are aborted by the next run, or they would hold back readers."""
    killed = start("run-1")
    killed.task(topic, 0, "lost-0")
    killed.task(topic, 0, "lost-1", task=1)
    run = start("run-2")
    run.commit(0, run.task(topic, 0, "kept"))
    await_values(values, "kept")


def test_killed_behind_the_decision(start: Start, topic: str, values: Values) -> None:
    killed = start("run-1")
    killed.decide_only(0, killed.task(topic, 0, "a"), killed.task(topic, 0, "b", task=1))
    run = start("run-2")
    with pytest.raises(WrongBatch, match="must be written again before batch 1"):
        run.task(topic, 1, "too early")
    assert run.task(topic, 0, "double") is None
    run.commit(0)
    await_values(values, "a", "b")
    run.commit(1, run.task(topic, 1, "c"))
    await_values(values, "a", "b", "c")


def test_killed_between_the_ends_of_two_transactions(
    start: Start, topic: str, values: Values
) -> None:
    killed = start("run-1")
    one, two = killed.task(topic, 0, "a"), killed.task(topic, 0, "b", task=1)
    killed.decide_only(0, one, two)
    assert one is not None
    assert killed.sink.coordinator.end(one, commit=True) is None
    run = start("run-2")
    assert run.task(topic, 0, "double") is None
    run.commit(0)
    run.commit(0)
    await_values(values, "a", "b")


def test_of_two_processes_that_commit_a_batch_one_decides(
    start: Start, topic: str, values: Values
) -> None:
    """A commit that hangs while a new driver writes the batch again: whoever comes second finishes what was decided."""
    old, new = start("run-1"), start("run-2")
    old_task, new_task = old.task(topic, 0, "a"), new.task(topic, 0, "a")
    old.sink.topic.create()
    taken = old.sink.topic.take(old.batch(0).sink_id)
    new.commit(0, new_task)
    assert old_task is not None
    with pytest.raises(HeadraceError):
        old.sink.topic.decide(old.batch(0).sink_id, Decision(0, (old_task,)), taken)
    old.commit(0, old_task)
    await_values(values, "a")
    new.commit(1, new.task(topic, 1, "b"))
    await_values(values, "a", "b")


def test_an_abort_after_a_decision_aborts_nothing_that_was_decided(
    start: Start, topic: str, values: Values
) -> None:
    run = start("run-1")
    task = run.task(topic, 0, "a")
    run.decide_only(0, task)
    assert task is not None
    run.sink.abort(run.batch(0), [task])
    run.commit(0)
    await_values(values, "a")


def test_an_abort_ends_what_is_known(start: Start, topic: str, values: Values) -> None:
    run = start("run-1")
    task = run.task(topic, 0, "a")
    assert task is not None
    run.sink.abort(run.batch(0), [task])
    assert run.sink.coordinator.is_open(task) is False
    run.commit(0, run.task(topic, 0, "b"))
    await_values(values, "b")


def test_the_transaction_of_a_failed_attempt_is_aborted(
    start: Start, topic: str, values: Values
) -> None:
    run = start("run-1")
    run.commit(0, run.task(topic, 0, "zero"))
    run.task(topic, 1, "first attempt", task=1)
    second = run.task(topic, 1, "second attempt", task=1, attempt=1)
    run.commit(1, second, has_failed_attempts=True)
    await_values(values, "zero", "second attempt")


def test_a_time_out_before_the_decision_loses_nothing(
    start: Start, topic: str, values: Values, broker: EmbeddedBroker
) -> None:
    run = start("run-1")
    task = run.task(topic, 0, "late", timeout_ms=1)
    assert task is not None
    await_end(broker, task)
    with pytest.raises(TransactionFailed, match="nothing is lost: start the query again"):
        run.commit(0, task)
    again = start("run-2")
    again.commit(0, again.task(topic, 0, "again"))
    await_values(values, "again")


def test_a_time_out_behind_the_decision_is_told(
    start: Start, topic: str, values: Values, broker: EmbeddedBroker
) -> None:
    killed = start("run-1")
    late, kept = (
        killed.task(topic, 0, "late", timeout_ms=1500),
        killed.task(topic, 0, "kept", task=1),
    )
    killed.decide_only(0, late, kept)
    assert late is not None
    await_end(broker, late)
    run = start("run-2")
    for _ in range(2):
        with pytest.raises(TransactionFailed, match=r"rows of batch 0 .* are lost"):
            run.commit(0)
    run.commit(0, fail_on_data_loss=False)
    run.commit(1, run.task(topic, 1, "next"))
    await_values(values, "kept", "next")


def await_end(broker: EmbeddedBroker, transaction: OpenTransaction) -> None:
    """Wait until a transaction has timed out."""
    deadline = time.monotonic() + 30
    with Admin(broker.bootstrap_servers) as admin:
        while describe_transaction(admin, transaction.transactional_id).state != "CompleteAbort":
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_time_out_above_the_brokers_maximum_is_told(start: Start, topic: str) -> None:
    with pytest.raises(TransactionFailed, match=r"transaction\.max\.timeout\.ms"):
        start("run-1").task(topic, 0, "a", timeout_ms=2**31 - 1)
