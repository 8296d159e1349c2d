"""Metadata, DescribeCluster, DescribeTopicPartitions, FindCoordinator, DescribeLogDirs: where things are."""

from uuid import UUID

from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.plain import Plain
from tests.differential.requests import batch, produce, versions
from tests.differential.script import Script


def topics_are_described_in_every_version(script: Script) -> None:
    names = [script.topic("a", partitions=3), script.topic("b")]
    asked = [MetadataRequestTopic(name=name) for name in names]
    for version in versions(MetadataRequest):
        script.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), version)


def authorized_operations_are_told_when_asked_for(script: Script) -> None:
    topic = script.topic("a")
    for version in range(8, 14):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)],
            include_cluster_authorized_operations=version <= 10,
            include_topic_authorized_operations=True,
        )
        script.ask(request, version)


def missing_and_badly_named_topics(script: Script) -> None:
    for name in (script.name("missing"), "", ".", "..", "a/b", "ü", "x" * 249, "x" * 250):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        for version in (4, 8, 9, 12, 13):
            script.ask(request, version)


def topics_are_found_by_id_from_version_12_on(script: Script) -> None:
    topic_id = script.topic_id(script.topic("a", partitions=2))
    for wanted in (topic_id, UUID(int=12345)):
        request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=wanted, name=None)])
        for version in (12, 13):
            script.ask(request, version)


def no_topics_and_all_topics(script: Script) -> None:
    topic = script.topic("a")

    def mine(answer: Plain) -> list[Plain]:
        # Other topics are in the answer too, so the ids in it cannot be numbered alike.
        return [found | {"topic_id": ""} for found in answer["topics"] if found["name"] == "a"]

    assert topic.endswith("a")
    script.ask(MetadataRequest(topics=()), 0, pick=mine)
    for version in (1, 9, 13):
        script.ask(MetadataRequest(topics=()), version)
        script.ask(MetadataRequest(topics=None), version, pick=mine)


def a_topic_is_created_by_asking_for_it(script: Script) -> None:
    name = script.name("made-by-metadata")
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    script.wait_for(wanted, 9, lambda answer: answer.topics[0].error_code == 0)
    script.ask(wanted, 9)


def the_cluster_is_described(script: Script) -> None:
    for version in versions(DescribeClusterRequest):
        script.ask(DescribeClusterRequest(), version)
        script.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)


def partitions_are_described_page_by_page(script: Script) -> None:
    topics = [script.topic("a", partitions=3), script.topic("b", partitions=2)]
    asked = [TopicRequest(name=name) for name in topics]
    script.ask(DescribeTopicPartitionsRequest(topics=asked), 0)
    script.ask(DescribeTopicPartitionsRequest(topics=asked, response_partition_limit=2), 0)
    cursor = DescribeTopicPartitionsRequestCursor(topic_name=topics[0], partition_index=2)
    script.ask(DescribeTopicPartitionsRequest(topics=asked, cursor=cursor), 0)
    missing = [TopicRequest(name=script.name("missing"))]
    script.ask(DescribeTopicPartitionsRequest(topics=missing), 0)


def coordinators_are_found(script: Script) -> None:
    group = script.group("g")
    for version in range(4):
        script.ask(FindCoordinatorRequest(key=group), version)
    for version in range(4, 7):
        script.ask(FindCoordinatorRequest(coordinator_keys=[group, script.name("other")]), version)


def coordinators_of_nothing(script: Script) -> None:
    for version in (1, 3):
        script.ask(FindCoordinatorRequest(key=script.name("k"), key_type=9), version)
    script.ask(FindCoordinatorRequest(coordinator_keys=()), 4)
    script.ask(FindCoordinatorRequest(coordinator_keys=[script.name("k")], key_type=9), 4)
    script.ask(FindCoordinatorRequest(key=""), 2)


def log_directories_are_described(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    script.ask(produce(topic, batch(b"one", b"two")), 9)
    asked = [DescribableLogDirTopic(topic=topic, partitions=[0, 1])]
    for version in versions(DescribeLogDirsRequest):
        script.ask(DescribeLogDirsRequest(topics=asked), version)
        missing = [DescribableLogDirTopic(topic=script.name("missing"), partitions=[0])]
        script.ask(DescribeLogDirsRequest(topics=missing), version)
