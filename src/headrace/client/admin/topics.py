"""Topics: which there are, what they look like, making, growing and deleting them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from headrace.client.admin.admin import Admin
from headrace.client.exchange import VersionNotOffered
from headrace.ids import NO_TOPIC_ID
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
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from headrace.wire.refusal import Refusal, refusal_of, require

BROKER_DEFAULT = -1  # partitions or replicas: what the broker is set to


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicListing:
    """A topic that exists."""

    name: str
    topic_id: UUID
    is_internal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """Where a partition's replicas are. `elr` is None where the cluster knows no eligible leader replicas."""

    partition: int
    leader_id: int | None
    replicas: Sequence[int]
    isr: Sequence[int]
    elr: Sequence[int] | None
    last_known_elr: Sequence[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic and its partitions, in order."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: list[PartitionDescription]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """What a topic was created with; -1 where the broker does not say."""

    partitions: int
    replication_factor: int


def list_topics(admin: Admin) -> list[TopicListing]:
    """Every topic, by name."""
    found = [
        TopicListing(name=topic.name, topic_id=topic.topic_id, is_internal=topic.is_internal)
        for topic in admin.metadata(None).topics
        if topic.name is not None and not topic.error_code
    ]
    return sorted(found, key=lambda topic: topic.name)


def describe_topics(
    admin: Admin, names: Iterable[str], *, page_partitions: int = 2000
) -> dict[str, TopicDescription | Refusal]:
    """These topics, by name."""
    wanted = sorted(names)
    if not wanted:
        return {}
    try:
        return _describe_by_page(admin, wanted, page_partitions)
    except VersionNotOffered:  # before Kafka 3.8 there was no such API
        return _describe_by_metadata(admin, wanted)


def _describe_by_page(
    admin: Admin, names: list[str], page_partitions: int
) -> dict[str, TopicDescription | Refusal]:
    found: dict[str, TopicDescription | Refusal] = {}
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=page_partitions,
            cursor=cursor,
        )
        answer = admin.ask_any(request)
        for topic in answer.topics:
            name = topic.name or ""
            refusal = refusal_of(topic.error_code)
            if refusal is not None:
                found[name] = refusal
                continue
            partitions = [
                PartitionDescription(
                    partition=each.partition_index,
                    leader_id=each.leader_id if each.leader_id >= 0 else None,
                    replicas=each.replica_nodes,
                    isr=each.isr_nodes,
                    elr=each.eligible_leader_replicas,
                    last_known_elr=each.last_known_elr,
                )
                for each in topic.partitions
            ]
            known = found.get(name)
            if isinstance(known, TopicDescription):
                known.partitions.extend(partitions)
            else:
                found[name] = TopicDescription(
                    name=name,
                    topic_id=topic.topic_id,
                    is_internal=topic.is_internal,
                    partitions=partitions,
                )
        if answer.next_cursor is None:
            return found
        cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=answer.next_cursor.topic_name,
            partition_index=answer.next_cursor.partition_index,
        )
        names = [name for name in names if name >= cursor.topic_name]


def _describe_by_metadata(admin: Admin, names: list[str]) -> dict[str, TopicDescription | Refusal]:
    found: dict[str, TopicDescription | Refusal] = {}
    for topic in admin.metadata(names).topics:
        name = topic.name or ""
        found[name] = refusal_of(topic.error_code) or TopicDescription(
            name=name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=[
                PartitionDescription(
                    partition=each.partition_index,
                    leader_id=each.leader_id if each.leader_id >= 0 else None,
                    replicas=each.replica_nodes,
                    isr=each.isr_nodes,
                    elr=None,
                    last_known_elr=None,
                )
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            ],
        )
    return found


def partitions_of(admin: Admin, topics: Iterable[str]) -> dict[str, list[int] | Refusal]:
    """The partition numbers of topics."""
    wanted = sorted(set(topics))
    if not wanted:
        return {}
    return {
        topic.name or "": refusal_of(topic.error_code)
        or sorted(partition.partition_index for partition in topic.partitions)
        for topic in admin.metadata(wanted).topics
    }


def create_topic(
    admin: Admin,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    assignment: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
    validate_only: bool = False,
) -> CreatedTopic:
    """Create a topic, or only ask whether it could be created. Raises Refused."""
    topic = CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if assignment else partitions,
        replication_factor=BROKER_DEFAULT if assignment else replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=broker_ids)
            for partition, broker_ids in (assignment or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )
    request = CreateTopicsRequest(
        topics=[topic], timeout_ms=admin.timeout_ms, validate_only=validate_only
    )
    answer = admin.ask_controller(
        request, errors_of=lambda found: [each.error_code for each in found.topics]
    )
    created = CreatedTopic(partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT)
    for result in answer.topics:
        require(result.error_code, result.error_message)
        created = CreatedTopic(
            partitions=result.num_partitions, replication_factor=result.replication_factor
        )
    return created


def grow_topics(
    admin: Admin, counts: Mapping[str, int], assignments: Mapping[str, Sequence[Sequence[int]]]
) -> None:
    """Give topics more partitions: the new count, and the brokers of the new ones where that is said."""
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=[
                    CreatePartitionsAssignment(broker_ids=broker_ids)
                    for broker_ids in assignments[name]
                ]
                if name in assignments
                else None,
            )
            for name, count in counts.items()
        ],
        timeout_ms=admin.timeout_ms,
    )
    answer = admin.ask_controller(
        request, errors_of=lambda found: [each.error_code for each in found.results]
    )
    for result in answer.results:
        require(result.error_code, result.error_message)


def delete_topics(admin: Admin, names: Sequence[str]) -> None:
    """Delete topics. Raises Refused for the first that was refused; the others are deleted."""
    request = DeleteTopicsRequest(
        topic_names=names,
        topics=[DeleteTopicState(name=name, topic_id=NO_TOPIC_ID) for name in names],
        timeout_ms=admin.timeout_ms,
    )
    answer = admin.ask_controller(
        request, errors_of=lambda found: [each.error_code for each in found.responses]
    )
    for result in answer.responses:
        require(result.error_code, result.error_message)
