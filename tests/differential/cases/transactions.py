"""Transactions: the coordinator's APIs, transactional writes, and what committed readers and other groups see of them."""

from dataclasses import dataclass

from headrace.records.batch_builder import BatchOptions
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_offsets import ListOffsetsRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.produce import ProduceRequest
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.differential.plain import Plain
from tests.differential.requests import LATEST, batch, fetch, list_offsets, produce, versions
from tests.differential.script import Script

TRANSACTION = 1  # key type of FindCoordinator
TV1, TV2 = 4, 5  # versions of EndTxn
READY = 0


@dataclass(frozen=True, slots=True)
class _Producer:
    id: str
    producer_id: int
    epoch: int

    def at(self, epoch: int) -> "_Producer":
        return _Producer(self.id, self.producer_id, epoch)


def _init(
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


def _producer(script: Script, stem: str = "t") -> _Producer:
    """A producer that may begin a transaction. Preparing; not compared."""
    name = _coordinated(script, stem)
    answer = script.wait_for(_init(name), 4, lambda a: a.error_code == READY)
    return _Producer(name, answer.producer_id, answer.producer_epoch)


def _coordinated(script: Script, stem: str) -> str:
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


def _add(producer: _Producer, topic: str, *partitions: int) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions or (0,))],
    )


def _add_for(
    producer: _Producer, topic: str, *partitions: int, verify_only: bool
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions or (0,))],
    )


def _end(producer: _Producer, *, commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )


def _write(
    producer: _Producer,
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


def _rest(script: Script, producer: _Producer) -> None:
    """Wait until no marker is missing."""
    script.wait_for(DescribeTransactionsRequest(transactional_ids=[producer.id]), 0, _is_at_rest)


def _describe(script: Script, *transactional_ids: str) -> None:
    def without_time(answer: Plain) -> Plain:
        for state in answer["transaction_states"]:
            for topic in state["topics"]:
                topic["partitions"] = sorted(topic["partitions"])
            state["transaction_start_time_ms"] = state["transaction_start_time_ms"] >= 0
        return answer

    request = DescribeTransactionsRequest(transactional_ids=transactional_ids)
    script.ask(request, 0, pick=without_time)


def _read(script: Script, topic: str, *, partition: int = 0) -> None:
    """Fetch as a reader of committed and of all data; the times of markers are not compared."""

    def without_times(answer: Plain) -> Plain:
        for found in answer["responses"]:
            for part in found["partitions"]:
                for one in part["records"] or ():
                    for name in ("base_timestamp", "max_timestamp"):
                        one.pop(name, None)
                    one["records"] = [[*record[:1], *record[2:]] for record in one["records"]]
        return answer

    for isolation in (0, 1):
        request = fetch(topic, 0, partition=partition)
        request.isolation_level = isolation
        script.ask(request, 11, pick=without_times)


def _ends(script: Script, topic: str) -> None:
    """The last stable offset and the high watermark."""
    for isolation in (0, 1):
        request: ListOffsetsRequest = list_offsets(topic, LATEST)
        request.isolation_level = isolation
        script.ask(request, 7)


# ---- FindCoordinator, InitProducerId


def the_coordinator_of_a_transactional_id_is_found(script: Script) -> None:
    name = _coordinated(script, "t")
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
        name = _coordinated(script, f"v{version}")
        script.ask(_init(name), version)
        script.ask(_init(name), version)
        _describe(script, name)


def impossible_initializations_are_refused(script: Script) -> None:
    name = _coordinated(script, "t")
    for version in (0, 3, 4, 5):
        script.ask(_init(""), version)
        for timeout_ms in (0, -1, 900_000, 900_001):
            script.ask(_init(name, timeout_ms), version)
            script.ask(_init(None, timeout_ms), version, pick=lambda a: a["error_code"])
    for producer_id, epoch in ((-1, 0), (7, -1), (7, 0), (-2, 3), (-7, -7), (7, -3)):
        fresh = _coordinated(script, f"{producer_id}.{epoch}")
        script.ask(_init(fresh, producer_id=producer_id, epoch=epoch), 4)
        script.ask(
            _init(None, producer_id=producer_id, epoch=epoch), 4, pick=lambda a: a["error_code"]
        )


def a_producer_goes_on_after_an_error(script: Script) -> None:
    one = _producer(script)
    go_on = _init(one.id, producer_id=one.producer_id, epoch=one.epoch)
    for version in (3, 4):
        script.ask(go_on, version)  # the second is a repetition
    script.ask(_init(one.id, producer_id=one.producer_id, epoch=one.epoch + 1), 4)
    script.ask(go_on, 4)  # two epochs behind
    script.ask(go_on, 3)
    script.ask(_init(one.id, producer_id=one.producer_id + 1_000_000, epoch=0), 4)
    script.ask(_init(one.id, producer_id=one.producer_id, epoch=9), 4)
    script.ask(_init(one.id), 4)  # another producer
    script.ask(_init(one.id, producer_id=one.producer_id, epoch=one.epoch + 2), 4)
    _describe(script, one.id)


def initialization_aborts_the_open_transaction(script: Script) -> None:
    topic = script.topic("a")
    one = _producer(script)
    script.ask(_add(one, topic), 3)
    script.ask(_write(one, topic), 9)
    script.ask(_init(one.id), 4)
    _rest(script, one)
    _describe(script, one.id)
    script.ask(_write(one, topic, sequence=1), 9)
    script.ask(_add(one, topic), 3)
    for version in (1, 2, TV1):
        script.ask(_end(one), version)
    script.ask(_init(one.id, producer_id=one.producer_id, epoch=one.epoch), 4)
    script.ask(_init(one.id), 4)
    _read(script, topic)


def initialization_with_an_identity_aborts_the_open_transaction(script: Script) -> None:
    topic = script.topic("a")
    for epoch in (0, 1, 5):
        one = _producer(script, f"t{epoch}")
        script.ask(_add(one, topic), 3)
        script.ask(_init(one.id, producer_id=one.producer_id, epoch=epoch), 4)
        _rest(script, one)
        _describe(script, one.id)
        script.ask(_init(one.id, producer_id=one.producer_id, epoch=epoch), 4)
        _describe(script, one.id)


# ---- AddPartitionsToTxn, AddOffsetsToTxn


def partitions_are_added_in_every_version_of_clients(script: Script) -> None:
    topic = script.topic("a", partitions=3)
    for version in range(4):
        one = _producer(script, f"v{version}")
        script.ask(_add(one, topic, 0, 2), version)
        script.ask(_add(one, topic, 0, 2), version)
        script.ask(_add(one, topic, 1), version)
        _describe(script, one.id)


def impossible_partitions_are_refused(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    one = _producer(script)
    for version in (0, 3):
        script.ask(_add(one, topic, 0, 7), version)
        script.ask(_add(one, script.name("missing"), 0), version)
        script.ask(_add(one, "__consumer_offsets", 0), version)
        script.ask(_add(one, topic, -1), version)
        script.ask(_add(_Producer("", one.producer_id, 0), topic), version)
        unknown = _Producer(_coordinated(script, "unknown"), one.producer_id, 0)
        script.ask(_add(unknown, topic), version)
        script.ask(_add(_Producer(one.id, one.producer_id + 1_000_000, 0), topic), version)
        script.ask(_add(_Producer(one.id, -1, 0), topic), version)
        for epoch in (-1, 1, 9):
            script.ask(_add(one.at(epoch), topic), version)
    _describe(script, one.id)


def brokers_add_and_verify_partitions(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    for version in (4, 5):
        one, two = _producer(script, f"one{version}"), _producer(script, f"two{version}")
        asked = AddPartitionsToTxnRequest(
            transactions=[
                _add_for(one, topic, 0, verify_only=False),
                _add_for(two, topic, 0, verify_only=True),
            ]
        )
        script.ask(asked, version)
        again = AddPartitionsToTxnRequest(
            transactions=[
                _add_for(one, topic, 0, 1, verify_only=True),
                _add_for(two, topic, 0, 9, verify_only=False),
            ]
        )
        script.ask(again, version)
        _describe(script, one.id, two.id)


def questions_of_brokers_are_refused(script: Script) -> None:
    topic = script.topic("a")
    one = _producer(script)
    unknown = _Producer(_coordinated(script, "unknown"), one.producer_id, 0)
    for version in (4, 5):
        for verify_only in (True, False):
            for producer in (
                unknown,
                _Producer("", one.producer_id, 0),
                _Producer(one.id, one.producer_id + 1_000_000, 0),
                one.at(5),
                one.at(-1),
            ):
                asked = [_add_for(producer, topic, 0, verify_only=verify_only)]
                script.ask(AddPartitionsToTxnRequest(transactions=asked), version)
    offsets = [_add_for(one, "__consumer_offsets", 0, verify_only=False)]
    script.wait_for(
        AddPartitionsToTxnRequest(transactions=offsets),
        5,
        lambda a: _first_error(a) == READY,
    )
    _describe(script, one.id)


def _first_error(answer: AddPartitionsToTxnResponse) -> int:
    results = answer.results_by_transaction[0].topic_results[0].results_by_partition
    return results[0].partition_error_code


def offsets_are_added(script: Script) -> None:
    group = script.group("g")
    for version in versions(AddOffsetsToTxnRequest):
        one = _producer(script, f"v{version}")
        for producer in (
            one,
            one.at(1),
            one.at(-1),
            _Producer(one.id, one.producer_id + 1_000_000, 0),
            _Producer("", one.producer_id, 0),
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
            one = _producer(script, f"v{version}{commit}")
            if version < TV2:
                script.ask(_add(one, topic), 3)
            script.ask(_write(one, topic), 12 if version >= TV2 else 9)
            script.ask(_end(one, commit=commit), version)
            _rest(script, one)
            _describe(script, one.id)
            script.ask(_end(one, commit=commit), version)  # a repetition
            script.ask(_end(one, commit=not commit), version)
    _read(script, topic)


def impossible_ends_are_refused(script: Script) -> None:
    for version in versions(EndTxnRequest):
        one = _producer(script, f"v{version}")
        unknown = _Producer(_coordinated(script, f"unknown{version}"), one.producer_id, 0)
        for producer in (
            unknown,
            _Producer("", one.producer_id, 0),
            _Producer(one.id, one.producer_id + 1_000_000, 0),
            one.at(-1),
            one.at(1),
        ):
            for commit in (True, False):
                script.ask(_end(producer, commit=commit), version)


def transactions_without_partitions_end(script: Script) -> None:
    for version in (TV1, TV2):
        for commit in (True, False):
            one = _producer(script, f"v{version}{commit}")
            script.ask(_end(one, commit=commit), version)
            _rest(script, one)
            _describe(script, one.id)
            script.ask(_end(one, commit=commit), version)
            script.ask(_end(one.at(1), commit=commit), version)
            _rest(script, one)
            _describe(script, one.id)


def versions_of_transactions_mix(script: Script) -> None:
    topic = script.topic("a")
    for first, second in ((TV1, TV2), (TV2, TV1)):
        one = _producer(script, f"{first}{second}")
        script.ask(_add(one, topic), 3)
        script.ask(_write(one, topic), 9)
        script.ask(_end(one), first)
        _rest(script, one)
        _describe(script, one.id)
        two = one.at(1 if first == TV2 else 0)
        sequence = 0 if first == TV2 else 1
        script.ask(_add(two, topic), 3)
        script.ask(_write(two, topic, sequence=sequence), 9)
        script.ask(_end(two, commit=False), second)
        _rest(script, one)
        _describe(script, one.id)
    _read(script, topic)


# ---- transactional writes


def writes_without_a_transaction_are_refused(script: Script) -> None:
    topic = script.topic("a")
    one = _producer(script)
    unknown = _coordinated(script, "unknown")
    for version in (3, 8, 9, 11):
        script.ask(_write(one, topic), version)
        script.ask(_write(one.at(3), topic), version)
        script.ask(_write(one, topic, transactional_id=unknown), version)
        script.ask(_write(_Producer(one.id, one.producer_id + 1_000_000, 0), topic), version)
    for version in (12,):
        script.ask(_write(one.at(3), topic), version)
        script.ask(_write(one, topic, transactional_id=unknown), version)
        script.ask(_write(_Producer(one.id, one.producer_id + 1_000_000, 0), topic), version)
        script.ask(_write(one, topic, sequence=4), version)
        script.ask(_write(one, topic), version)
    _describe(script, one.id)


def ids_of_writes_must_fit(script: Script) -> None:
    topic = script.topic("a")
    one = _producer(script)
    script.ask(_add(one, topic), 3)
    for version in (9, 11, 12):
        request = _write(one, topic)
        request.transactional_id = None
        script.ask(request, version)
        script.ask(_write(one, topic, transactional=False), version)
        request = produce(topic, batch(b"plain"))
        request.transactional_id = one.id
        script.ask(request, version)


def writes_of_a_fenced_producer_are_refused(script: Script) -> None:
    topic = script.topic("a")
    for version, end in ((9, TV1), (11, TV1), (12, TV2)):
        one = _producer(script, f"v{version}")
        if end == TV1:
            script.ask(_add(one, topic), 3)
        script.ask(_write(one, topic), version)
        script.ask(_write(one, topic, transactional=False, sequence=1), version)
        script.ask(_end(one), end)
        _rest(script, one)
        script.ask(_write(one, topic, b"late", sequence=1), version)
        script.ask(_init(one.id), 4)
        script.ask(_write(one, topic, b"later", sequence=1), version)
        script.ask(_write(one.at(9), topic, b"never", sequence=0), version)
    _read(script, topic)


def committed_readers_wait_for_the_end(script: Script) -> None:
    topic = script.topic("a")
    one, two = _producer(script, "one"), _producer(script, "two")
    script.ask(_add(one, topic), 3)
    script.ask(_write(one, topic, b"one"), 9)
    script.ask(produce(topic, batch(b"plain")), 9)
    script.ask(_write(two, topic, b"two"), 12)
    _read(script, topic)
    _ends(script, topic)
    script.ask(_end(two), TV2)
    _rest(script, two)
    _read(script, topic)
    _ends(script, topic)
    script.ask(_end(one, commit=False), TV1)
    _rest(script, one)
    _read(script, topic)
    _ends(script, topic)
    asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    script.ask(asked, 0)


# ---- TxnOffsetCommit


def _commit_offsets(
    producer: _Producer,
    group: str,
    topic: str,
    *,
    partition: int = 0,
    offset: int = 5,
    generation: int = -1,
    member_id: str = "",
    metadata: str = "m",
) -> TxnOffsetCommitRequest:
    part = TxnOffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=0,
        committed_metadata=metadata,
    )
    return TxnOffsetCommitRequest(
        transactional_id=producer.id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id=generation,
        member_id=member_id,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
    )


def _fetch_offsets(script: Script, group: str, topic: str) -> None:
    for stable in (False, True):
        for partitions in ([OffsetFetchRequestTopics(name=topic, partition_indexes=[0])], None):
            request = OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=group, topics=partitions)],
                require_stable=stable,
            )
            script.ask(request, 8)


def _add_offsets(producer: _Producer, group: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group,
    )


def offsets_count_once_committed(script: Script) -> None:
    topic = script.topic("a")
    for version in versions(TxnOffsetCommitRequest):
        for commit in (False, True):
            group = script.group(f"g{version}{commit}")
            one = _producer(script, f"v{version}{commit}")
            if version < 5:
                script.ask(_add_offsets(one, group), 3)
            script.ask(_commit_offsets(one, group, topic), version)
            _fetch_offsets(script, group, topic)
            script.ask(_end(one, commit=commit), TV2 if version >= 5 else TV1)
            _rest(script, one)
            _fetch_offsets(script, group, topic)


def impossible_offsets_are_refused(script: Script) -> None:
    topic, group = script.topic("a"), script.group("g")
    for version in (2, 3, 4, 5):
        one = _producer(script, f"v{version}")
        script.ask(_commit_offsets(one.at(4), group, topic), version)
        script.ask(_commit_offsets(_Producer(one.id, one.producer_id + 10**6, 0), group, topic), 3)
        if version < 5:
            script.ask(_commit_offsets(one, group, topic), version)  # not added
            script.ask(_add_offsets(one, group), 3)
        script.ask(_commit_offsets(one, group, topic, partition=9), version)
        script.ask(_commit_offsets(one, group, script.name("missing")), version)
        script.ask(_commit_offsets(one, "", topic), version)
        script.ask(_commit_offsets(one, group, topic, metadata="m" * 5_000), version)
        if version >= 3:
            script.ask(_commit_offsets(one, group, topic, generation=3), version)
            script.ask(_commit_offsets(one, group, topic, member_id="nobody"), version)
            script.ask(
                _commit_offsets(one, group, topic, generation=1, member_id="nobody"), version
            )
        script.ask(_commit_offsets(one, group, topic, offset=-1), version)
        script.ask(_end(one, commit=False), TV2 if version >= 5 else TV1)
        _rest(script, one)
        script.ask(_commit_offsets(one, group, topic), version)


# ---- WriteTxnMarkers


def _marker(
    producer: _Producer,
    topic: str,
    *partitions: int,
    commit: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=partitions or (0,))],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


def markers_are_written(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    for version in versions(WriteTxnMarkersRequest):
        one = _producer(script, f"v{version}")
        script.ask(_add(one, topic), 3)
        script.ask(_write(one, topic), 9)
        for marker in (
            _marker(one, topic, 0, 1, coordinator_epoch=4),
            _marker(one, topic, 0, coordinator_epoch=4),
            _marker(one, topic, 0, coordinator_epoch=3),
            _marker(one, topic, 0, coordinator_epoch=5, commit=False),
            _marker(one.at(2), topic, 0, coordinator_epoch=5),
            _marker(one.at(1), topic, 0, coordinator_epoch=5),
            _marker(one.at(3), topic, 9, coordinator_epoch=5),
            _marker(one.at(3), script.name("missing"), 0, coordinator_epoch=5),
        ):
            script.ask(WriteTxnMarkersRequest(markers=[marker]), version)
    script.ask(WriteTxnMarkersRequest(), 1)
    _read(script, topic)


def markers_of_version_2_need_a_higher_epoch(script: Script) -> None:
    topic = script.topic("a")
    one = _producer(script)
    script.ask(_write(one, topic), 12)
    for epoch in (0, 1, 1, 0, 2):
        marker = _marker(one.at(epoch), topic, 0, transaction_version=2)
        script.ask(WriteTxnMarkersRequest(markers=[marker]), 2)
    _read(script, topic)


# ---- DescribeTransactions, ListTransactions


def unknown_transactional_ids_are_described(script: Script) -> None:
    one = _producer(script)
    _describe(script, _coordinated(script, "unknown"), one.id)
    script.ask(DescribeTransactionsRequest(transactional_ids=[]), 0)
    script.ask(DescribeTransactionsRequest(transactional_ids=[""]), 0)


def transactions_are_listed(script: Script) -> None:
    topic = script.topic("a")
    one, two = _producer(script, "one"), _producer(script, "two")
    script.ask(_add(one, topic), 3)
    script.ask(_end(two, commit=False), TV2)
    _rest(script, two)

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
