"""Whether all brokers of a cluster agree, and do what they agree on: topics, ids, roles, epochs, configs, directories.

`disagreement` says in one sentence what is not so yet; None is agreement. Everything is read from outside: from each broker over
its own port, and from its disk.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.ids import TopicPartition, id_of_text
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from headrace.wire.messages.metadata import MetadataRequest
from tests.support.cluster_process import ClusterBroker, ClusterProcess, PartitionView

_TOPIC, _BROKER = 2, 4
_LATEST = -1
_NONE, _NOT_LEADER = 0, 6
_UNKNOWN_TOPIC = 3
_SOURCES = {_TOPIC: 1, _BROKER: 3}  # a topic's own configs; the cluster's defaults for brokers


class Picture(NamedTuple):
    """What one broker believes."""

    controller_id: int
    brokers: frozenset[int]
    topic_ids: Mapping[str, UUID]
    partitions: Mapping[TopicPartition, PartitionView]
    configs: Mapping[tuple[int, str], Mapping[str, str | None]]
    moves: int


def disagreement(cluster: ClusterProcess) -> str | None:
    """What keeps the brokers from agreeing; None if nothing does."""
    try:
        pictures = {id_: _picture(broker) for id_, broker in cluster.brokers.items()}
        first = pictures[min(pictures)]
        for broker_id, picture in pictures.items():
            for name in Picture._fields:
                ours, theirs = getattr(first, name), getattr(picture, name)
                if ours != theirs:
                    return f"{name} on broker {broker_id}: {_difference(ours, theirs)}"
        if first.brokers != set(cluster.brokers):
            return f"registered are only {sorted(first.brokers)}"
        return _unfinished(first) or next(
            filter(None, (_deviation(broker, first) for broker in cluster.brokers.values())), None
        )
    except Disconnected as error:
        return f"no answer: {error}"


def agreed_leaders(cluster: ClusterProcess) -> dict[TopicPartition, tuple[UUID, int]]:
    """Each partition with its topic's id and its leader, once the brokers agree."""
    picture = _picture(next(iter(cluster.brokers.values())))
    return {
        where: (picture.topic_ids[where.topic], view.leader)
        for where, view in picture.partitions.items()
    }


def _unfinished(picture: Picture) -> str | None:
    if picture.moves:
        return f"{picture.moves} partitions are being moved"
    for where, view in picture.partitions.items():
        if view.leader < 0:
            return f"{where} has no leader: {view}"
        if set(view.isr) != set(view.replicas):
            return f"{where} is not in sync: {view}"
    return None


def _picture(broker: ClusterBroker) -> Picture:
    with Connection("127.0.0.1", broker.port, timeout_s=10) as connection:
        metadata = connection.send(MetadataRequest(topics=None))
        partitions = {
            TopicPartition(str(topic.name), each.partition_index): PartitionView(
                each.leader_id,
                each.leader_epoch,
                tuple(each.replica_nodes),
                tuple(sorted(each.isr_nodes)),
            )
            for topic in metadata.topics
            for each in topic.partitions
        }
        resources = [(_BROKER, ""), *((_TOPIC, str(topic.name)) for topic in metadata.topics)]
        described = connection.send(
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=kind, resource_name=name, configuration_keys=None
                    )
                    for kind, name in resources
                ]
            )
        )
        moves = connection.send(ListPartitionReassignmentsRequest(topics=None))
    return Picture(
        metadata.controller_id,
        frozenset(each.node_id for each in metadata.brokers),
        {str(topic.name): topic.topic_id for topic in metadata.topics},
        partitions,
        {
            (each.resource_type, each.resource_name): {
                config.name: config.value
                for config in each.configs
                if config.config_source == _SOURCES[each.resource_type]
            }
            for each in described.results
        },
        sum(len(topic.partitions) for topic in moves.topics),
    )


def _deviation(broker: ClusterBroker, picture: Picture) -> str | None:
    """What a broker does otherwise than agreed."""
    return _wrong_directories(broker, picture) or _wrong_roles(broker, picture)


def _wrong_directories(broker: ClusterBroker, picture: Picture) -> str | None:
    expected = {
        str(where): picture.topic_ids[where.topic]
        for where, view in picture.partitions.items()
        if broker.broker_id in view.replicas
    }
    found: dict[str, UUID | None] = {}
    for directory in broker.data_dir.iterdir():
        if directory.is_dir() and not directory.name.endswith("-stray"):
            found[directory.name] = _topic_id(directory / "partition.metadata")
    if found != expected:
        return f"directories of broker {broker.broker_id}: {_difference(expected, found)}"
    return None


def _topic_id(path: Path) -> UUID | None:
    try:
        fields = dict(line.split(": ") for line in path.read_text().splitlines())
    except FileNotFoundError:
        return None
    return id_of_text(fields["topic_id"])


def _wrong_roles(broker: ClusterBroker, picture: Picture) -> str | None:
    """A leader answers in exactly its epoch; nobody else does."""
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=where.partition,
                        current_leader_epoch=view.leader_epoch,
                        timestamp=_LATEST,
                    )
                    for where, view in picture.partitions.items()
                    if where.topic == name
                ],
            )
            for name in picture.topic_ids
        ],
    )
    with Connection("127.0.0.1", broker.port, timeout_s=10) as connection:
        answer = connection.send(request)
    for topic in answer.topics:
        for each in topic.partitions:
            where = TopicPartition(topic.name, each.partition_index)
            view = picture.partitions[where]
            leads = view.leader == broker.broker_id
            allowed = (_NONE,) if leads else (_NOT_LEADER, _UNKNOWN_TOPIC)
            if each.error_code not in allowed:
                return f"broker {broker.broker_id} answers {each.error_code} for {where}: {view}"
    return None


def _difference(expected: object, found: object) -> str:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        parts = [
            f"{key}: {expected.get(key)!r} or {found.get(key)!r}"
            for key in dict.fromkeys((*expected, *found))
            if expected.get(key) != found.get(key)
        ]
        return "; ".join(parts[:5])
    return f"{expected!r} or {found!r}"
