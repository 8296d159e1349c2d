"""Records and offsets of transactions: what is taken, and what committed readers and groups see of it."""

from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
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
from tests.differential.requests import LATEST, batch, fetch, list_offsets, produce, versions
from tests.differential.script import Script
from tests.differential.transactional import (
    READY,
    TV1,
    TV2,
    UNKNOWN_TOPIC,
    TxnProducer,
    add,
    coordinated,
    describe,
    end_txn,
    ends,
    init,
    new_producer,
    read,
    wait_for_markers,
    without_times,
    write,
)

# ---- transactional writes


def writes_without_a_transaction_are_refused(script: Script) -> None:
    topic = script.topic("a")
    one = new_producer(script)
    unknown = coordinated(script, "unknown")
    for version in (3, 8, 9, 11):
        script.ask(write(one, topic), version)
        script.ask(write(one.at(3), topic), version)
        script.ask(write(one, topic, transactional_id=unknown), version)
        script.ask(write(TxnProducer(one.id, one.producer_id + 1_000_000, 0), topic), version)
    for version in (12,):
        script.ask(write(one.at(3), topic), version)
        script.ask(write(one, topic, transactional_id=unknown), version)
        script.ask(write(TxnProducer(one.id, one.producer_id + 1_000_000, 0), topic), version)
        script.ask(write(one, topic, sequence=4), version)
        script.ask(write(one, topic), version)
    describe(script, one.id)


def ids_of_writes_must_fit(script: Script) -> None:
    topic = script.topic("a")
    one = new_producer(script)
    script.ask(add(one, topic), 3)
    for version in (9, 11, 12):
        request = write(one, topic)
        request.transactional_id = None
        script.ask(request, version)
        script.ask(write(one, topic, transactional=False), version)
        request = produce(topic, batch(b"plain"))
        request.transactional_id = one.id
        script.ask(request, version)


def writes_of_a_fenced_producer_are_refused(script: Script) -> None:
    topic = script.topic("a")
    for version, end in ((9, TV1), (11, TV1), (12, TV2)):
        one = new_producer(script, f"v{version}")
        if end == TV1:
            script.ask(add(one, topic), 3)
        script.ask(write(one, topic), version)
        script.ask(write(one, topic, transactional=False, sequence=1), version)
        script.ask(end_txn(one), end)
        wait_for_markers(script, one)
        script.ask(write(one, topic, b"late", sequence=1), version)
        script.ask(init(one.id), 4)
        script.ask(write(one, topic, b"later", sequence=1), version)
        script.ask(write(one.at(9), topic, b"never", sequence=0), version)
    read(script, topic)


def committed_readers_wait_for_the_end(script: Script) -> None:
    topic = script.topic("a")
    one, two = new_producer(script, "one"), new_producer(script, "two")
    script.ask(add(one, topic), 3)
    script.ask(write(one, topic, b"one"), 9)
    script.ask(produce(topic, batch(b"plain")), 9)
    script.ask(write(two, topic, b"two"), 12)
    read(script, topic)
    ends(script, topic)
    script.ask(end_txn(two), TV2)
    wait_for_markers(script, two)
    read(script, topic)
    ends(script, topic)
    script.ask(end_txn(one, commit=False), TV1)
    wait_for_markers(script, one)
    read(script, topic)
    ends(script, topic)
    asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    script.ask(asked, 0)


# ---- TxnOffsetCommit


def _commit_offsets(
    producer: TxnProducer,
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


def _add_offsets(producer: TxnProducer, group: str) -> AddOffsetsToTxnRequest:
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
            one = new_producer(script, f"v{version}{commit}")
            if version < 5:
                script.ask(_add_offsets(one, group), 3)
            script.ask(_commit_offsets(one, group, topic), version)
            _fetch_offsets(script, group, topic)
            script.ask(end_txn(one, commit=commit), TV2 if version >= 5 else TV1)
            wait_for_markers(script, one)
            _fetch_offsets(script, group, topic)


def impossible_offsets_are_refused(script: Script) -> None:
    topic, group = script.topic("a"), script.group("g")
    for version in (2, 3, 4, 5):
        one = new_producer(script, f"v{version}")
        script.ask(_commit_offsets(one.at(4), group, topic), version)
        script.ask(
            _commit_offsets(TxnProducer(one.id, one.producer_id + 10**6, 0), group, topic), 3
        )
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
        script.ask(end_txn(one, commit=False), TV2 if version >= 5 else TV1)
        wait_for_markers(script, one)
        script.ask(_commit_offsets(one, group, topic), version)


# ---- WriteTxnMarkers


def _marker(
    producer: TxnProducer,
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
        one = new_producer(script, f"v{version}")
        script.ask(add(one, topic), 3)
        script.ask(write(one, topic), 9)
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
    read(script, topic)


def markers_of_version_2_need_a_higher_epoch(script: Script) -> None:
    topic = script.topic("a")
    one = new_producer(script)
    script.ask(write(one, topic), 12)
    for epoch in (0, 1, 1, 0, 2):
        marker = _marker(one.at(epoch), topic, 0, transaction_version=2)
        script.ask(WriteTxnMarkersRequest(markers=[marker]), 2)
    read(script, topic)


# ---- what happens to topics and groups meanwhile


def a_topic_is_deleted_in_a_transaction(script: Script) -> None:
    for recreated in (False, True):
        kept, gone = script.topic(f"kept{recreated}"), script.topic(f"gone{recreated}")
        one = new_producer(script, f"t{recreated}")
        for topic in (kept, gone):
            script.ask(add(one, topic), 3)
            script.ask(write(one, topic), 9)
        script.wait_for(
            DeleteTopicsRequest(topic_names=[gone], timeout_ms=10_000),
            5,
            lambda a: a.responses[0].error_code in (0, UNKNOWN_TOPIC),
        )
        script.wait_for(
            list_offsets(gone, LATEST), 7, lambda a: a.topics[0].partitions[0].error_code != READY
        )
        if recreated:
            script.topic(f"gone{recreated}")
        script.ask(end_txn(one), TV1)
        wait_for_markers(script, one)
        describe(script, one.id)
        read(script, kept)
        if recreated:
            ends(script, gone)


def records_of_transactions_are_deleted(script: Script) -> None:
    topic = script.topic("a")
    one, two = new_producer(script, "one"), new_producer(script, "two")
    script.ask(write(one, topic, b"aborted"), 12)
    script.ask(write(two, topic, b"open"), 12)
    script.ask(write(one, topic, b"aborted, too", sequence=1), 12)
    script.ask(end_txn(one, commit=False), TV2)
    wait_for_markers(script, one)
    for offset in (1, 2):
        part = DeleteRecordsPartition(partition_index=0, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=10_000
        )
        script.ask(request, 2)
        _read_from(script, topic, offset)
        ends(script, topic)
    script.ask(end_txn(two), TV2)
    wait_for_markers(script, two)
    _read_from(script, topic, 2)
    ends(script, topic)


def _read_from(script: Script, topic: str, offset: int) -> None:
    request = fetch(topic, offset)
    request.isolation_level = 1
    script.ask(request, 11, pick=without_times)


def a_plain_commit_comes_before_the_end(script: Script) -> None:
    topic = script.topic("a")
    for commit in (True, False):
        group = script.group(f"g{commit}")
        one = new_producer(script, f"t{commit}")
        script.ask(_commit_offsets(one, group, topic, offset=5), 5)
        plain = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
                    ],
                )
            ],
        )
        script.ask(plain, 8)
        _fetch_offsets(script, group, topic)
        script.ask(end_txn(one, commit=commit), TV2)
        wait_for_markers(script, one)
        _fetch_offsets(script, group, topic)


def two_transactions_commit_for_one_group(script: Script) -> None:
    topic, group = script.topic("a"), script.group("g")
    one, two = new_producer(script, "one"), new_producer(script, "two")
    script.ask(_commit_offsets(one, group, topic, offset=5), 5)
    script.ask(_commit_offsets(two, group, topic, offset=7), 5)
    script.ask(end_txn(two), TV2)
    wait_for_markers(script, two)
    _fetch_offsets(script, group, topic)
    script.ask(end_txn(one), TV2)
    wait_for_markers(script, one)
    _fetch_offsets(script, group, topic)


def a_group_with_open_transactions_is_deleted(script: Script) -> None:
    topic, group = script.topic("a"), script.group("g")
    one = new_producer(script)
    script.ask(_commit_offsets(one, group, topic, offset=5), 5)
    script.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    _fetch_offsets(script, group, topic)
    script.ask(end_txn(one), TV2)
    wait_for_markers(script, one)
    _fetch_offsets(script, group, topic)
