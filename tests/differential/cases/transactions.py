"""The transaction coordinator's APIs: producers, partitions, ends, and what is told of transactions."""

from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
)
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from tests.differential.plain import Plain
from tests.differential.requests import versions
from tests.differential.script import Script
from tests.differential.transactional import (
    READY,
    TRANSACTION,
    TV1,
    TV2,
    TxnProducer,
    add,
    add_for,
    coordinated,
    describe,
    end_txn,
    init,
    new_producer,
    read,
    wait_for_markers,
    write,
)

# ---- FindCoordinator, InitProducerId


def the_coordinator_of_a_transactional_id_is_found(script: Script) -> None:
    name = coordinated(script, "t")
    for version in versions(FindCoordinatorRequest):
        if version < 1:
            continue
        request = FindCoordinatorRequest(key=name, key_type=TRANSACTION, coordinator_keys=[name])
        script.ask(request, version)
    for version in (3, 4):
        empty = FindCoordinatorRequest(key="", key_type=TRANSACTION, coordinator_keys=["", name])
        script.ask(empty, version)


def a_transactional_producer_is_initialized(script: Script) -> None:
    for version in versions(InitProducerIdRequest):
        name = coordinated(script, f"v{version}")
        script.ask(init(name), version)
        script.ask(init(name), version)
        describe(script, name)


def impossible_initializations_are_refused(script: Script) -> None:
    name = coordinated(script, "t")
    for version in (0, 3, 4, 5):
        script.ask(init(""), version)
        for timeout_ms in (0, -1, 900_000, 900_001):
            script.ask(init(name, timeout_ms), version)
            script.ask(init(None, timeout_ms), version, pick=lambda a: a["error_code"])
    for producer_id, epoch in ((-1, 0), (7, -1), (7, 0), (-2, 3), (-7, -7), (7, -3)):
        fresh = coordinated(script, f"{producer_id}.{epoch}")
        script.ask(init(fresh, producer_id=producer_id, epoch=epoch), 4)
        script.ask(
            init(None, producer_id=producer_id, epoch=epoch), 4, pick=lambda a: a["error_code"]
        )


def a_producer_goes_on_after_an_error(script: Script) -> None:
    one = new_producer(script)
    go_on = init(one.id, producer_id=one.producer_id, epoch=one.epoch)
    for version in (3, 4):
        script.ask(go_on, version)  # the second is a repetition
    script.ask(init(one.id, producer_id=one.producer_id, epoch=one.epoch + 1), 4)
    script.ask(go_on, 4)  # two epochs behind
    script.ask(go_on, 3)
    script.ask(init(one.id, producer_id=one.producer_id + 1_000_000, epoch=0), 4)
    script.ask(init(one.id, producer_id=one.producer_id, epoch=9), 4)
    script.ask(init(one.id), 4)  # another producer
    script.ask(init(one.id, producer_id=one.producer_id, epoch=one.epoch + 2), 4)
    describe(script, one.id)


def initialization_aborts_the_open_transaction(script: Script) -> None:
    topic = script.topic("a")
    one = new_producer(script)
    script.ask(add(one, topic), 3)
    script.ask(write(one, topic), 9)
    script.ask(init(one.id), 4)
    wait_for_markers(script, one)
    describe(script, one.id)
    script.ask(write(one, topic, sequence=1), 9)
    script.ask(add(one, topic), 3)
    for version in (1, 2, TV1):
        script.ask(end_txn(one), version)
    script.ask(init(one.id, producer_id=one.producer_id, epoch=one.epoch), 4)
    script.ask(init(one.id), 4)
    read(script, topic)


def initialization_with_an_identity_aborts_the_open_transaction(script: Script) -> None:
    topic = script.topic("a")
    for epoch in (0, 1, 5):
        one = new_producer(script, f"t{epoch}")
        script.ask(add(one, topic), 3)
        script.ask(init(one.id, producer_id=one.producer_id, epoch=epoch), 4)
        wait_for_markers(script, one)
        describe(script, one.id)
        script.ask(init(one.id, producer_id=one.producer_id, epoch=epoch), 4)
        describe(script, one.id)


# ---- AddPartitionsToTxn, AddOffsetsToTxn


def partitions_are_added_in_every_version_of_clients(script: Script) -> None:
    topic = script.topic("a", partitions=3)
    for version in range(4):
        one = new_producer(script, f"v{version}")
        script.ask(add(one, topic, 0, 2), version)
        script.ask(add(one, topic, 0, 2), version)
        script.ask(add(one, topic, 1), version)
        describe(script, one.id)


def impossible_partitions_are_refused(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    one = new_producer(script)
    for version in (0, 3):
        script.ask(add(one, topic, 0, 7), version)
        script.ask(add(one, script.name("missing"), 0), version)
        script.ask(add(one, "__consumer_offsets", 0), version)
        script.ask(add(one, topic, -1), version)
        script.ask(add(TxnProducer("", one.producer_id, 0), topic), version)
        unknown = TxnProducer(coordinated(script, "unknown"), one.producer_id, 0)
        script.ask(add(unknown, topic), version)
        script.ask(add(TxnProducer(one.id, one.producer_id + 1_000_000, 0), topic), version)
        script.ask(add(TxnProducer(one.id, -1, 0), topic), version)
        for epoch in (-1, 1, 9):
            script.ask(add(one.at(epoch), topic), version)
    describe(script, one.id)


def brokers_add_and_verify_partitions(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    for version in (4, 5):
        one, two = new_producer(script, f"one{version}"), new_producer(script, f"two{version}")
        asked = AddPartitionsToTxnRequest(
            transactions=[
                add_for(one, topic, 0, verify_only=False),
                add_for(two, topic, 0, verify_only=True),
            ]
        )
        script.ask(asked, version)
        again = AddPartitionsToTxnRequest(
            transactions=[
                add_for(one, topic, 0, 1, verify_only=True),
                add_for(two, topic, 0, 9, verify_only=False),
            ]
        )
        script.ask(again, version)
        describe(script, one.id, two.id)


def questions_of_brokers_are_refused(script: Script) -> None:
    topic = script.topic("a")
    one = new_producer(script)
    unknown = TxnProducer(coordinated(script, "unknown"), one.producer_id, 0)
    for version in (4, 5):
        for verify_only in (True, False):
            for producer in (
                unknown,
                TxnProducer("", one.producer_id, 0),
                TxnProducer(one.id, one.producer_id + 1_000_000, 0),
                one.at(5),
                one.at(-1),
            ):
                asked = [add_for(producer, topic, 0, verify_only=verify_only)]
                script.ask(AddPartitionsToTxnRequest(transactions=asked), version)
    offsets = [add_for(one, "__consumer_offsets", 0, verify_only=False)]
    script.wait_for(
        AddPartitionsToTxnRequest(transactions=offsets),
        5,
        lambda a: _first_error(a) == READY,
    )
    describe(script, one.id)


def _first_error(answer: AddPartitionsToTxnResponse) -> int:
    results = answer.results_by_transaction[0].topic_results[0].results_by_partition
    return results[0].partition_error_code


def offsets_are_added(script: Script) -> None:
    group = script.group("g")
    for version in versions(AddOffsetsToTxnRequest):
        one = new_producer(script, f"v{version}")
        for producer in (
            one,
            one.at(1),
            one.at(-1),
            TxnProducer(one.id, one.producer_id + 1_000_000, 0),
            TxnProducer("", one.producer_id, 0),
        ):
            request = AddOffsetsToTxnRequest(
                transactional_id=producer.id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                group_id=group,
            )
            script.ask(request, version)
        empty = AddOffsetsToTxnRequest(
            transactional_id=one.id, producer_id=one.producer_id, producer_epoch=0, group_id=""
        )
        script.ask(empty, version)


# ---- EndTxn


def transactions_end_in_every_version(script: Script) -> None:
    topic = script.topic("a")
    for version in versions(EndTxnRequest):
        for commit in (True, False):
            one = new_producer(script, f"v{version}{commit}")
            if version < TV2:
                script.ask(add(one, topic), 3)
            script.ask(write(one, topic), 12 if version >= TV2 else 9)
            script.ask(end_txn(one, commit=commit), version)
            wait_for_markers(script, one)
            describe(script, one.id)
            script.ask(end_txn(one, commit=commit), version)  # a repetition
            script.ask(end_txn(one, commit=not commit), version)
    read(script, topic)


def impossible_ends_are_refused(script: Script) -> None:
    for version in versions(EndTxnRequest):
        one = new_producer(script, f"v{version}")
        unknown = TxnProducer(coordinated(script, f"unknown{version}"), one.producer_id, 0)
        for producer in (
            unknown,
            TxnProducer("", one.producer_id, 0),
            TxnProducer(one.id, one.producer_id + 1_000_000, 0),
            one.at(-1),
            one.at(1),
        ):
            for commit in (True, False):
                script.ask(end_txn(producer, commit=commit), version)


def transactions_without_partitions_end(script: Script) -> None:
    for version in (TV1, TV2):
        for commit in (True, False):
            one = new_producer(script, f"v{version}{commit}")
            script.ask(end_txn(one, commit=commit), version)
            wait_for_markers(script, one)
            describe(script, one.id)
            script.ask(end_txn(one, commit=commit), version)
            script.ask(end_txn(one.at(1), commit=commit), version)
            wait_for_markers(script, one)
            describe(script, one.id)


def versions_of_transactions_mix(script: Script) -> None:
    topic = script.topic("a")
    for first, second in ((TV1, TV2), (TV2, TV1)):
        one = new_producer(script, f"{first}{second}")
        script.ask(add(one, topic), 3)
        script.ask(write(one, topic), 9)
        script.ask(end_txn(one), first)
        wait_for_markers(script, one)
        describe(script, one.id)
        two = one.at(1 if first == TV2 else 0)
        sequence = 0 if first == TV2 else 1
        script.ask(add(two, topic), 3)
        script.ask(write(two, topic, sequence=sequence), 9)
        script.ask(end_txn(two, commit=False), second)
        wait_for_markers(script, one)
        describe(script, one.id)
    read(script, topic)


# ---- DescribeTransactions, ListTransactions


def unknown_transactional_ids_are_described(script: Script) -> None:
    one = new_producer(script)
    describe(script, coordinated(script, "unknown"), one.id)
    script.ask(DescribeTransactionsRequest(transactional_ids=[]), 0)
    script.ask(DescribeTransactionsRequest(transactional_ids=[""]), 0)


def transactions_are_listed(script: Script) -> None:
    topic = script.topic("a")
    one, two = new_producer(script, "one"), new_producer(script, "two")
    script.ask(add(one, topic), 3)
    script.ask(end_txn(two, commit=False), TV2)
    wait_for_markers(script, two)

    def mine(answer: Plain) -> Plain:
        found = [each for each in answer["transaction_states"] if each["transactional_id"] in names]
        return {**answer, "transaction_states": found}

    names = ("one", "two")
    for version in (0, 1):
        for states in ((), ("Ongoing",), ("CompleteAbort", "Empty"), ("ongoing",), ("x", "Dead")):
            request = ListTransactionsRequest(state_filters=states)
            script.ask(request, version, pick=mine)
        for ids in ((one.producer_id,), (one.producer_id, two.producer_id), (-1,)):
            script.ask(ListTransactionsRequest(producer_id_filters=ids), version, pick=mine)
    for duration in (0, 1, 3_600_000, -2):
        script.ask(ListTransactionsRequest(duration_filter=duration), 1, pick=mine)
