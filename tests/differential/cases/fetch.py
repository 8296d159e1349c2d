"""Fetch with its sessions, ListOffsets, OffsetForLeaderEpoch."""

from uuid import UUID

from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from headrace.wire.messages.list_offsets import ListOffsetsRequest
from headrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.differential.requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    TIME_MS,
    batch,
    fetch,
    list_offsets,
    produce,
    versions,
)
from tests.differential.script import Script


def _filled(script: Script, *, batches: int = 3) -> str:
    topic = script.topic("a")
    for number in range(batches):
        values = (b"%d-1" % number, b"%d-2" % number)
        script.ask(produce(topic, batch(*values, timestamp=TIME_MS + number * 1000)), 9)
    return topic


def records_are_fetched_in_every_version(script: Script) -> None:
    topic = _filled(script)
    topic_id = script.topic_id(topic)
    for version in versions(FetchRequest):
        for offset in (0, 3, 6):
            script.ask(fetch(topic, offset, topic_id=topic_id), version)


def offsets_out_of_range_are_refused(script: Script) -> None:
    topic = _filled(script)
    topic_id = script.topic_id(topic)
    part = DeleteRecordsPartition(partition_index=0, offset=2)
    topics = [DeleteRecordsTopic(name=topic, partitions=[part])]
    script.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2)
    for version in (4, 5, 11, 12, 13, 18):
        for offset in (0, 1, 2, 6, 7, -1):
            script.ask(fetch(topic, offset, topic_id=topic_id), version)


def unknown_topics_and_partitions_cannot_be_fetched(script: Script) -> None:
    topic = _filled(script)
    topic_id = script.topic_id(topic)
    for version in (4, 11, 12):
        script.ask(fetch(script.name("missing"), 0), version)
    for version in (13, 18):
        script.ask(fetch("", 0, topic_id=UUID(int=77)), version)
    for version in (4, 12, 13):
        script.ask(fetch(topic, 0, topic_id=topic_id, partition=9), version)


def leader_epochs_are_checked(script: Script) -> None:
    topic = _filled(script)
    topic_id = script.topic_id(topic)
    for version in (9, 12, 16):
        for epoch in (-1, 0, 1, 99):
            script.ask(fetch(topic, 0, topic_id=topic_id, leader_epoch=epoch), version)
    for last_fetched in (-1, 0, 5):
        script.ask(fetch(topic, 3, leader_epoch=0, last_fetched_epoch=last_fetched), 12)


def size_limits_are_soft_for_the_first_batch(script: Script) -> None:
    topic = _filled(script)
    size = len(batch(b"0-1", b"0-2"))
    for limit in (0, 1, size, size + 1, 2 * size, 3 * size):
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=limit)
        topics = [FetchTopic(topic=topic, partitions=[part])]
        script.ask(FetchRequest(max_bytes=1 << 20, topics=topics), 11)
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=topic, partitions=[part])]
        script.ask(FetchRequest(max_bytes=limit, topics=topics), 11)


def committed_readers_get_the_list_of_aborted(script: Script) -> None:
    topic = _filled(script)
    for version in (4, 11, 12):
        request = fetch(topic, 0)
        request.isolation_level = 1
        script.ask(request, version)


def _in_session(
    topic: str, session_id: int, epoch: int, *offsets: tuple[int, int], forget: tuple[int, ...] = ()
) -> FetchRequest:
    parts = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        for partition, offset in offsets
    ]
    return FetchRequest(
        max_wait_ms=50,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=topic, partitions=parts)] if parts else (),
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=forget)] if forget else (),
    )


def sessions_send_only_what_changed(script: Script) -> None:
    topic = script.topic("a", partitions=3)
    script.ask(produce(topic, batch(b"x")), 9)
    opened = script.ask(_in_session(topic, 0, 0, (0, 0), (1, 0)), 11)
    session_id = opened.session_id
    assert session_id != 0
    script.ask(_in_session(topic, session_id, 1, (0, 1)), 11)
    script.ask(_in_session(topic, session_id, 2), 11)
    script.ask(produce(topic, batch(b"y"), partition=1), 9)
    script.ask(_in_session(topic, session_id, 3), 11)
    script.ask(_in_session(topic, session_id, 4, (1, 1), (2, 0)), 11)
    script.ask(_in_session(topic, session_id, 5, forget=(0, 1)), 11)
    script.ask(produce(topic, batch(b"z")), 9)
    script.ask(_in_session(topic, session_id, 6), 11)
    script.ask(_in_session(topic, session_id, -1), 11)
    script.ask(_in_session(topic, session_id, 7), 11)


def wrong_sessions_are_refused(script: Script) -> None:
    topic = script.topic("a")
    script.ask(_in_session(topic, 123456, 1, (0, 0)), 11)
    opened = script.ask(_in_session(topic, 0, 0, (0, 0)), 11)
    script.ask(_in_session(topic, opened.session_id, 5), 11)
    script.ask(_in_session(topic, opened.session_id, 1), 11)
    script.ask(_in_session(topic, opened.session_id, 1), 11)
    script.ask(_in_session(topic, 0, 1), 11)
    script.ask(_in_session(topic, opened.session_id, 2), 13)


def offsets_are_listed_for_every_special_time(script: Script) -> None:
    topic = _filled(script)
    for version in versions(ListOffsetsRequest):
        for timestamp in (
            LATEST,
            EARLIEST,
            TIME_MS,
            TIME_MS + 1,
            TIME_MS + 2000,
            TIME_MS + 2001,
            0,
        ):
            script.ask(list_offsets(topic, timestamp), version)
    newer = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
    for timestamp, since in newer.items():
        for version in (since - 1, since, 11):
            script.ask(list_offsets(topic, timestamp), version)
    script.ask(list_offsets(topic, -99), 11)


def offsets_of_an_empty_log(script: Script) -> None:
    topic = script.topic("a")
    for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, TIME_MS):
        script.ask(list_offsets(topic, timestamp), 11)


def offsets_of_the_wrong_partition(script: Script) -> None:
    topic = _filled(script)
    for version in (1, 4, 11):
        script.ask(list_offsets(script.name("missing"), LATEST), version)
        script.ask(list_offsets(topic, LATEST, partition=9), version)
        for epoch in (0, 1, 99):
            script.ask(list_offsets(topic, LATEST, epoch=epoch), version)
    script.ask(list_offsets(topic, LATEST, EARLIEST), 7)  # one partition twice
    committed = list_offsets(topic, LATEST)
    committed.isolation_level = 1
    for version in (2, 11):
        script.ask(committed, version)


def ends_of_leader_epochs(script: Script) -> None:
    topic = _filled(script)
    for version in versions(OffsetForLeaderEpochRequest):
        for name, partition in ((topic, 0), (topic, 9), (script.name("missing"), 0)):
            for current, wanted in ((-1, 0), (0, 0), (0, -1), (0, 5), (99, 0)):
                part = OffsetForLeaderPartition(
                    partition=partition, current_leader_epoch=current, leader_epoch=wanted
                )
                topics = [OffsetForLeaderTopic(topic=name, partitions=[part])]
                script.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), version)
