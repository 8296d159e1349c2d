"""OffsetCommit, OffsetFetch, OffsetDelete."""

from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.sync_group import SyncGroupRequest
from tests.differential.requests import versions
from tests.differential.script import Script

MEMBER_ID_REQUIRED = 79


def _commit(
    script: Script,
    group: str,
    topic: str,
    *,
    offset: int = 5,
    partition: int = 0,
    generation: int = -1,
    member_id: str = "",
    metadata: str | None = "note",
) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=0,
        committed_metadata=metadata,
    )
    known = topic.endswith("a")
    topics = OffsetCommitRequestTopic(
        name=topic, partitions=[part], **({"topic_id": script.topic_id(topic)} if known else {})
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[topics],
    )


def _fetch(script: Script, group: str, topic: str, version: int) -> None:
    if version < 8:
        asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])]
        script.ask(OffsetFetchRequest(group_id=group, topics=asked), version)
        return
    topics = OffsetFetchRequestTopics(
        name=topic, topic_id=script.topic_id(topic), partition_indexes=[0, 1]
    )
    groups = [OffsetFetchRequestGroup(group_id=group, topics=[topics])]
    script.ask(OffsetFetchRequest(groups=groups), version)


def offsets_are_committed_and_fetched_in_every_version(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    for version in versions(OffsetCommitRequest):
        group = script.group(f"v{version}")
        script.ask(_commit(script, group, topic, offset=version), version)
        for fetch_version in versions(OffsetFetchRequest):
            _fetch(script, group, topic, fetch_version)


def all_offsets_of_a_group_are_fetched(script: Script) -> None:
    topic, group = script.topic("a", partitions=2), script.group("g")
    script.ask(_commit(script, group, topic), 9)
    script.ask(_commit(script, group, topic, partition=1, metadata=None), 9)
    for version in range(2, 8):
        script.ask(OffsetFetchRequest(group_id=group, topics=None), version)
    both = [
        OffsetFetchRequestGroup(group_id=group, topics=None),
        OffsetFetchRequestGroup(group_id=script.name("missing"), topics=None),
    ]
    for version in (8, 9, 10):
        script.ask(OffsetFetchRequest(groups=both), version)
        script.ask(OffsetFetchRequest(groups=both, require_stable=True), version)


def bad_commits_are_refused(script: Script) -> None:
    topic, group = script.topic("a"), script.group("g")
    for version in (2, 5, 8, 9):
        script.ask(_commit(script, group, topic, partition=9), version)
        script.ask(_commit(script, group, topic, metadata="x" * 4097), version)
        script.ask(_commit(script, group, topic, metadata="x" * 4096), version)
        script.ask(_commit(script, group, topic, generation=3, member_id="never-seen"), version)
        script.ask(_commit(script, group, topic, generation=3), version)
        script.ask(_commit(script, "", topic), version)
        script.ask(_commit(script, group, topic, offset=-5), version)


def commits_to_unknown_topics_are_refused(script: Script) -> None:
    group = script.group("g")
    for version in (2, 8, 9, 10):
        script.ask(_commit(script, group, script.name("missing-b")), version)


def members_commit_in_their_generation(script: Script) -> None:
    topic, group = script.topic("a"), script.group("g")
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    join.member_id = script.ask(join, 5).member_id
    member = script.ask(join, 5)
    generation, member_id = member.generation_id, member.member_id
    for version in (2, 9):  # before the assignment is known
        commit = _commit(script, group, topic, generation=generation, member_id=member_id)
        script.ask(commit, version)
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    script.ask(sync, 5)
    steps = [
        (generation, member_id),
        (generation + 1, member_id),
        (generation, "never-seen"),
        (-1, ""),
    ]
    for given_generation, given_member in steps:
        for version in (2, 7, 9):
            commit = _commit(
                script, group, topic, generation=given_generation, member_id=given_member
            )
            script.ask(commit, version)


def committed_offsets_are_deleted(script: Script) -> None:
    topic, group = script.topic("a", partitions=2), script.group("g")
    script.ask(_commit(script, group, topic), 9)
    for group_id, name, partition in (
        (group, topic, 0),
        (group, topic, 1),
        (group, topic, 9),
        (group, script.name("missing"), 0),
        (script.name("no-group"), topic, 0),
    ):
        part = OffsetDeleteRequestPartition(partition_index=partition)
        topics = [OffsetDeleteRequestTopic(name=name, partitions=[part])]
        script.ask(OffsetDeleteRequest(group_id=group_id, topics=topics), 0)
    _fetch(script, group, topic, 7)
