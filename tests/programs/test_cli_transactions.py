"""`headrace transactions` against a broker."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from tests.programs.conftest import Headrace, Unique, parsed

LONG_S = 30


@pytest.fixture
def transactional_id(unique: Unique) -> str:
    return unique("txn")


@pytest.fixture
def producer(address: str, topic: str, transactional_id: str) -> Iterator[Producer]:
    """A producer with an open transaction in partition 0 of the topic, from offset 0 on."""
    made = Producer(
        {"bootstrap.servers": address, "transactional.id": transactional_id, "log_level": 0}
    )
    made.init_transactions(LONG_S)
    made.begin_transaction()
    made.produce(topic, b"open", partition=0)
    made.flush(LONG_S)
    yield made
    made.purge()


def row(text: str, key: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if key in line)
    return [cell.strip() for cell in line.split("\t")[:-1]]


def test_an_open_transaction_is_listed_and_described(
    headrace: Headrace, producer: Producer, topic: str, transactional_id: str
) -> None:
    listed = headrace("transactions", "list").stdout
    assert listed.splitlines()[0].split() == [
        "TransactionalId",
        "Coordinator",
        "ProducerId",
        "TransactionState",
    ]
    producer_id = row(listed, transactional_id)[2]
    assert row(listed, transactional_id)[3] == "Ongoing"
    assert (
        transactional_id
        not in headrace("transactions", "list", "--duration-filter", "3600000").stdout
    )
    (found,) = parsed(
        headrace(
            "transactions",
            "list",
            "--transactional-id-pattern",
            transactional_id,
            "--output",
            "json",
        )
    )
    assert found["TransactionalId"] == transactional_id
    described = headrace("transactions", "describe", "--transactional-id", transactional_id).stdout
    cells = row(described, transactional_id)
    assert cells[1:6] == [transactional_id, producer_id, "0", "Ongoing", "60000"]
    assert int(cells[7]) < 3_600_000
    assert cells[8] == f"{topic}-0"
    in_partition = ("--topic", topic, "--partition", "0")
    producers = headrace("transactions", "describe-producers", *in_partition).stdout
    assert row(producers, producer_id)[5] == "0"
    # It is not hanging: the coordinator knows of it.
    hanging = ("transactions", "find-hanging", "--max-transaction-timeout", "0", *in_partition)
    assert len(headrace(*hanging).stdout.splitlines()) == 1


def test_an_unknown_transactional_id(headrace: Headrace, producer: Producer) -> None:
    said = headrace("transactions", "describe", "--transactional-id", "nobody", succeed=False)
    assert said.exit_code == 1
    assert "TRANSACTIONAL_ID_NOT_FOUND" in said.stderr


def test_a_terminated_transaction_is_aborted_and_its_producer_fenced(
    headrace: Headrace, producer: Producer, transactional_id: str
) -> None:
    terminate = ("forceTerminateTransaction", "--transactional-id", transactional_id)
    assert headrace("transactions", *terminate).stdout == ""
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(LONG_S)
    assert refused.value.args[0].fatal()


def test_one_partition_is_aborted(headrace: Headrace, producer: Producer, topic: str) -> None:
    in_partition = ("--topic", topic, "--partition", "0")
    wrong = headrace("transactions", "abort", *in_partition, "--start-offset", "7", succeed=False)
    assert "Could not find any open transactions starting at offset 7" in wrong.stderr
    headrace("transactions", "abort", *in_partition, "--start-offset", "0")
    producers = headrace("transactions", "describe-producers", *in_partition).stdout
    assert producers.splitlines()[1].split("\t")[5].strip() == "None"
