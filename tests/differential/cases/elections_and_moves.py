"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments, AlterReplicaLogDirs: what one broker can show of them."""

from collections.abc import Mapping, Sequence

from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.plain import Pick, Plain
from tests.differential.requests import versions
from tests.differential.script import Script

PREFERRED, UNCLEAN = 0, 1


def _elect(
    script: Script,
    version: int,
    partitions: Mapping[str, Sequence[int]] | None,
    *,
    election_type: int = PREFERRED,
    timeout_ms: int = 30_000,
    pick: Pick | None = None,
) -> None:
    asked = (
        None
        if partitions is None
        else [TopicPartitions(topic=name, partitions=found) for name, found in partitions.items()]
    )
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=asked, timeout_ms=timeout_ms
    )
    script.ask(request, version, pick=pick)


def elections_that_are_not_needed_or_not_possible(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    for version in versions(ElectLeadersRequest):
        for election_type in (PREFERRED, UNCLEAN) if version else (PREFERRED,):
            for partitions in (
                {topic: (0, 1)},
                {topic: (0, 7, -1)},
                {script.name("missing"): (0,), topic: (1,)},
                {topic: ()},
                {},
            ):
                _elect(script, version, partitions, election_type=election_type)


def an_election_of_all_mentions_every_topic(script: Script) -> None:
    topic = script.topic("a", partitions=2)

    def about_ours(answer: Plain) -> object:
        results = answer.pop("replica_election_results")
        name = topic.removeprefix(script.name(""))
        return answer, [result for result in results if result["topic"] == name]

    for version in versions(ElectLeadersRequest):
        _elect(script, version, None, pick=about_ours)


def unknown_elections_and_no_time(script: Script) -> None:
    topic = script.topic("a")
    for version in (1, 2):
        _elect(script, version, {topic: (0,)}, election_type=7)
        _elect(script, version, {topic: (0,)}, timeout_ms=0)


def _move(
    script: Script,
    version: int,
    topic: str,
    *moves: tuple[int, Sequence[int] | None],
    allow_factor_change: bool = True,
) -> None:
    partitions = [
        ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas in moves
    ]
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000,
        allow_replication_factor_change=allow_factor_change,
        topics=[ReassignableTopic(name=topic, partitions=partitions)],
    )
    script.ask(request, version)


def moves_that_cannot_be(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    for version in versions(AlterPartitionReassignmentsRequest):
        _move(script, version, topic, (0, [99]))
        _move(script, version, topic, (0, [1, 1]))
        _move(script, version, topic, (0, []))
        _move(script, version, topic, (0, None), (1, [1]))
        _move(script, version, topic, (7, [1]))
        _move(script, version, topic, (7, None))
        _move(script, version, script.name("missing"), (0, [1]))
        _move(script, version, script.name("missing"), (0, None))
        _move(script, version, topic)
    _move(script, 1, topic, (0, [1]), allow_factor_change=False)
    _move(script, 1, topic, (0, [1, 2]), allow_factor_change=False)
    for version in versions(AlterPartitionReassignmentsRequest):
        script.ask(AlterPartitionReassignmentsRequest(timeout_ms=30_000), version)


def a_move_to_where_it_is_changes_nothing(script: Script) -> None:
    topic = script.topic("a")
    _move(script, 1, topic, (0, [1]))
    script.ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=30_000), 0)
    script.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)


def nothing_moves(script: Script) -> None:
    topic = script.topic("a")
    for topics in (
        None,
        [],
        [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0, 5])],
        [ListPartitionReassignmentsTopics(name=script.name("missing"), partition_indexes=[0])],
        [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[])],
    ):
        script.ask(ListPartitionReassignmentsRequest(topics=topics, timeout_ms=30_000), 0)


def nobody_is_in_a_hurry_to_know_what_moves(script: Script) -> None:
    for timeout_ms in (0, -5):
        script.ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout_ms), 0)


def logs_stay_in_the_only_directory(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    asked = DescribableLogDirTopic(topic=topic, partitions=[0])
    described = script.ask(DescribeLogDirsRequest(topics=[asked]), 4)
    own = described.results[0].log_dir
    for version in versions(AlterReplicaLogDirsRequest):
        for path in (own, "/nowhere", "relative", ""):
            for name in (topic, script.name("missing"), "x" * 249):
                topics = [AlterReplicaLogDirTopic(name=name, partitions=[0, 7])]
                wanted = AlterReplicaLogDir(path=path, topics=topics)
                script.ask(AlterReplicaLogDirsRequest(dirs=[wanted]), version)
        script.ask(AlterReplicaLogDirsRequest(dirs=[]), version)
    script.ask(DescribeLogDirsRequest(topics=[asked]), 4)
