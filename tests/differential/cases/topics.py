"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from headrace.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.requests import EARLIEST, batch, fetch, list_offsets, produce, versions
from tests.differential.script import Script


def _create(
    script: Script, version: int, *topics: CreatableTopic, validate_only: bool = False
) -> None:
    request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=validate_only)
    script.ask(request, version)


def topics_are_created_in_every_version(script: Script) -> None:
    for version in versions(CreateTopicsRequest):
        name = script.name(f"v{version}")
        config = CreatableTopicConfig(name="retention.ms", value="12345")
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=[config])
        _create(script, version, topic, validate_only=True)
        _create(script, version, topic)
        _create(script, version, topic)  # exists by now


def defaults_are_taken_for_minus_one(script: Script) -> None:
    for version in (4, 7):
        topic = CreatableTopic(
            name=script.name(f"v{version}"), num_partitions=-1, replication_factor=-1
        )
        _create(script, version, topic)


def bad_topics_are_refused(script: Script) -> None:
    def topic(
        name: str, partitions: int = 1, factor: int = 1, **configs: str | None
    ) -> CreatableTopic:
        entries = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        return CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=factor, configs=entries
        )

    bad = [
        *(topic(name) for name in ("", ".", "..", "a/b", "x" * 250)),
        topic(script.name("p0"), partitions=0),
        topic(script.name("p-2"), partitions=-2),
        topic(script.name("r0"), factor=0),
        topic(script.name("r2"), factor=2),
        topic(script.name("c1"), no_such_config="1"),
        topic(script.name("c2"), retention_ms="soon"),
        topic(script.name("c3"), cleanup_policy="burn"),
        topic(script.name("c4"), retention_ms=None),
        topic(script.name("c5"), min_insync_replicas="0"),
        topic(script.name("c6"), compression_type="rar"),
    ]
    for one in bad:
        for version in (2, 5, 7):
            _create(script, version, one)


def colliding_and_repeated_names(script: Script) -> None:
    script.topic("a.b")
    _create(
        script, 7, CreatableTopic(name=script.name("a_b"), num_partitions=1, replication_factor=1)
    )
    twice = CreatableTopic(name=script.name("twice"), num_partitions=1, replication_factor=1)
    _create(script, 7, twice, twice)
    good = CreatableTopic(name=script.name("good"), num_partitions=1, replication_factor=1)
    _create(
        script, 7, good, CreatableTopic(name="not/good", num_partitions=1, replication_factor=1)
    )
    _create(script, 7)


def assignments_are_checked(script: Script) -> None:
    def assigned(
        name: str, *brokers: tuple[int, list[int]], partitions: int = -1
    ) -> CreatableTopic:
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in brokers
        ]
        return CreatableTopic(
            name=script.name(name),
            num_partitions=partitions,
            replication_factor=-1,
            assignments=assignments,
        )

    _create(script, 7, assigned("good", (0, [1]), (1, [1])))
    _create(script, 7, assigned("unknown-broker", (0, [99])))
    _create(script, 7, assigned("twice-the-same", (0, [1, 1])))
    _create(script, 7, assigned("hole", (0, [1]), (2, [1])))
    _create(script, 7, assigned("empty", (0, [])))
    _create(script, 7, assigned("both", (0, [1]), partitions=1))


def topics_are_deleted_by_name_and_by_id(script: Script) -> None:
    for version in range(1, 6):
        name = script.topic(f"v{version}")
        names = [name, script.name("missing")]
        script.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=30_000), version)
    by_name = DeleteTopicState(name=script.topic("by-name"))
    by_id = DeleteTopicState(topic_id=script.topic_id(script.topic("by-id")))
    missing = DeleteTopicState(name=script.name("missing"))
    script.ask(DeleteTopicsRequest(topics=[by_name, by_id, missing], timeout_ms=30_000), 6)


def a_deleted_topic_is_gone_and_may_come_back(script: Script) -> None:
    name = script.topic("a")
    script.ask(produce(name, batch(b"old")), 9)
    first_id = script.topic_id(name)
    script.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
    gone = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    script.wait_for(gone, 12, lambda answer: answer.topics[0].error_code == 3)
    script.topic("a")
    assert script.topic_id(name) != first_id
    script.ask(fetch(name, 0), 11)


def partitions_are_added(script: Script) -> None:
    for version in versions(CreatePartitionsRequest):
        topic = script.topic(f"v{version}", partitions=2)
        for count in (1, 2, 4):
            wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
            request = CreatePartitionsRequest(topics=[wanted], timeout_ms=30_000)
            script.ask(request, version)
        assigned = CreatePartitionsTopic(
            name=topic, count=5, assignments=[CreatePartitionsAssignment(broker_ids=[99])]
        )
        script.ask(CreatePartitionsRequest(topics=[assigned], timeout_ms=30_000), version)
        missing = CreatePartitionsTopic(name=script.name("missing"), count=3, assignments=None)
        script.ask(CreatePartitionsRequest(topics=[missing], timeout_ms=30_000), version)


def records_are_deleted(script: Script) -> None:
    topic = script.topic("a")
    for _ in range(3):
        script.ask(produce(topic, batch(b"1", b"2")), 9)
    for version in versions(DeleteRecordsRequest):
        for offset in (version + 1, 99, -2):
            part = DeleteRecordsPartition(partition_index=0, offset=offset)
            script.ask(
                DeleteRecordsRequest(
                    topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=10_000
                ),
                version,
            )
        script.ask(fetch(topic, 0), 11)
        script.ask(list_offsets(topic, EARLIEST), 7)
    everything = DeleteRecordsPartition(partition_index=0, offset=-1)
    unknown = DeleteRecordsPartition(partition_index=7, offset=1)
    for partition in (everything, unknown):
        topics = [DeleteRecordsTopic(name=topic, partitions=[partition])]
        script.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2)
