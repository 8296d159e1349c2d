"""Loads the cluster state from the nodes of the coordination store, when a broker becomes the controller.

Owns how the nodes fit together. What was left unfinished is found here: a partition without state
comes out as new, and the nodes of a deleted topic come out as leftovers to be removed. A node that
makes no sense costs the topic it belongs to, and is named; it never stops the controller, and brokers keep the topic's logs.
"""

import logging
from collections.abc import Mapping
from uuid import UUID

import msgspec

from headrace.controller.brokers import Registration
from headrace.controller.changes import (
    Change,
    ConfigChanged,
    ControllerElected,
    FeaturesFinalized,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from headrace.controller.cluster_state import ClusterState
from headrace.controller.configs import config_at
from headrace.controller.core import MIN_ISR, Group, NodeVersions, is_partition_path
from headrace.controller.features import epoch_of
from headrace.controller.values import Broker, ConfigKind, Endpoint, PartitionState
from headrace.coordination.nodes import (
    UNREADABLE_TOPIC_CONFIG,
    BrokerEpochNode,
    BrokerNode,
    BrokerSessionNode,
    ConfigNode,
    DeletedTopicNode,
    FeatureNode,
    MalformedNode,
    PartitionStateNode,
    ProducerIdBlockNode,
    TopicNode,
    states_below,
)
from headrace.coordination.store import Delete, Node, NoNode, Store
from headrace.ids import id_of_text

Tree = Mapping[str, Node]

_log = logging.getLogger(__name__)


class Picture(msgspec.Struct):
    """All that the nodes say."""

    state: ClusterState = msgspec.field(default_factory=ClusterState)
    nodes: NodeVersions = msgspec.field(default_factory=NodeVersions)
    seen_epochs: dict[int, int] = {}
    seen_directories: dict[int, tuple[str, ...]] = {}
    has_producer_ids: bool = True
    leftovers: list[Group] = []
    faults: list[str] = []


class Trees(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that hold data, as far as a controller needs them."""

    topics: Tree
    configs: Tree
    epochs: Tree
    deleted_topics: Tree
    producer_ids: Node | None
    features: Node | None = None


async def load(store: Store, broker_id: int, controller_epoch: int) -> Picture:
    """Read everything but the brokers' registrations."""
    trees = Trees(
        topics=await store.get_tree(TopicNode.ROOT, states_below),
        configs=await store.get_tree(ConfigNode.ROOT),
        epochs=await store.get_tree(BrokerEpochNode.ROOT),
        deleted_topics=await store.get_tree(DeletedTopicNode.ROOT),
        producer_ids=await store.get(ProducerIdBlockNode.PATH),
        features=await store.get(FeatureNode.PATH),
    )
    return picture_of(trees, ControllerElected(broker_id, controller_epoch))


def picture_of(trees: Trees, election: ControllerElected) -> Picture:
    """Build the cluster state from the nodes."""
    picture = Picture()
    _add_deleted_topics(picture, trees.deleted_topics)
    unreadable_configs = _add_configs(picture, trees.configs)
    unreadable = _add_topics(picture, trees.topics)
    picture.state.apply(msgspec.structs.replace(election, unreadable_topics=unreadable))
    for name in unreadable_configs:
        _replace_unreadable_config(picture, name)
    _add_epochs(picture, trees.epochs)
    _add_producer_ids(picture, trees.producer_ids)
    _add_features(picture, trees.features)
    return picture


async def registrations(store: Store) -> dict[int, Registration]:
    """The brokers that are registered now."""
    found = {}
    for path, node in (await store.get_tree(BrokerNode.ROOT)).items():
        try:
            broker_id = int(path.rpartition("/")[2])
            registered = BrokerNode.decode(broker_id, node.data)
            endpoints = endpoints_of(registered)
        except (MalformedNode, ValueError) as error:
            _log.error("a registration makes no sense and is left out: %s: %s", path, error)
            continue
        found[broker_id] = Registration(
            broker=Broker(
                broker_id,
                node.created_txn,
                endpoints,
                registered.rack,
                features=registered.feature_levels,
            ),
            previous_epoch=registered.previous_broker_epoch,
            clean_since_epoch=registered.clean_since_epoch,
            directories=registered.directories,
            offline_directories=registered.offline_directories,
        )
    return found


async def living_sessions(store: Store) -> frozenset[int]:
    """The brokers whose sessions live now, whether or not they are registered."""
    try:
        names = await store.children(BrokerSessionNode.ROOT)
    except NoNode:
        return frozenset()
    return frozenset(int(name) for name in names if name.isdigit())


def endpoints_of(node: BrokerNode) -> tuple[Endpoint, ...]:
    """A registration's endpoints, taken apart."""
    endpoints = []
    for text in node.endpoints:
        listener, _, address = text.partition("://")
        host, _, port = address.rpartition(":")
        protocol = node.listener_security_protocol_map.get(listener, listener)
        endpoints.append(Endpoint(listener, host.strip("[]"), int(port), protocol))
    return tuple(endpoints)


def _add_deleted_topics(picture: Picture, tree: Tree) -> None:
    for path, node in tree.items():
        try:
            deleted = DeletedTopicNode.decode(path, node.data)
            topic_id = id_of_text(path.rpartition("/")[2])
        except (MalformedNode, ValueError) as error:
            picture.faults.append(f"{path}: {error}")
            continue
        picture.nodes.known[path] = node.version
        picture.state.apply(TopicDeleted(deleted.name, topic_id, deleted.pending))


def _add_configs(picture: Picture, tree: Tree) -> list[str]:
    """Returns the topics whose config cannot be read."""
    unreadable_topics: list[str] = []
    for path, node in tree.items():
        resource = config_at(path)
        if resource is None:
            continue
        picture.nodes.known[path] = node.version
        try:
            values = ConfigNode.decode(path, node.data).config
        except MalformedNode as error:
            picture.faults.append(str(error))
            if resource[0] is ConfigKind.TOPIC:
                unreadable_topics.append(resource[1])
            continue
        picture.state.apply(ConfigChanged(*resource, values))
    return unreadable_topics


def _replace_unreadable_config(picture: Picture, name: str) -> None:
    """Nothing of the topic is deleted, and its partitions keep the minimum of in-sync replicas that they have."""
    topic = picture.state.topics.get(name)
    if topic is None:
        return
    values = dict(UNREADABLE_TOPIC_CONFIG)
    min_isr = max(partition.min_isr for partition in topic.partitions)
    if min_isr:
        values[MIN_ISR] = str(min_isr)
    picture.state.apply(ConfigChanged(ConfigKind.TOPIC, name, values))


def _add_epochs(picture: Picture, tree: Tree) -> None:
    for path, node in tree.items():
        name = path.rpartition("/")[2]
        if not (name.isascii() and name.isdigit()):
            picture.faults.append(f"{path}: {name} is no broker's id")
            continue
        broker_id = int(name)
        picture.nodes.known[path] = node.version
        try:
            seen = BrokerEpochNode.decode(broker_id, node.data)
        except MalformedNode as error:
            picture.faults.append(str(error))
            continue
        picture.seen_epochs[broker_id] = seen.epoch
        picture.seen_directories[broker_id] = seen.directories


def _add_producer_ids(picture: Picture, block: Node | None) -> None:
    if block is None:
        return
    picture.nodes.known[ProducerIdBlockNode.PATH] = block.version
    try:
        next_id = ProducerIdBlockNode.decode(block.data).next_start
    except (MalformedNode, ValueError) as error:
        # An id that is given out twice makes one producer's records the repetition of another's.
        picture.has_producer_ids = False
        picture.faults.append(f"no producer ids are given out before this is mended: {error}")
        return
    picture.state.apply(ProducerIdsAllocated(next_id))


def _add_features(picture: Picture, node: Node | None) -> None:
    if node is None:
        return
    picture.nodes.known[FeatureNode.PATH] = node.version
    try:
        levels = FeatureNode.decode(node.data).features
    except MalformedNode as error:
        picture.faults.append(f"no feature is in force before this is mended: {error}")
        return
    picture.state.apply(FeaturesFinalized(levels, epoch_of(node.version)))


def _add_topics(picture: Picture, tree: Tree) -> dict[str, str]:
    """Returns the topics that cannot be read: name → what is wrong."""
    unreadable: dict[str, str] = {}
    for path, node in tree.items():
        if is_partition_path(path):
            continue
        name = path.removeprefix(TopicNode.ROOT + "/")
        picture.nodes.known[path] = node.version
        try:
            topic = TopicNode.decode(name, node.data)
            topic_id = id_of_text(topic.topic_id)
            if topic_id in picture.state.deleted_topics:
                picture.leftovers.extend(_leftovers(picture, name, topic, tree))
                picture.state.apply(ConfigChanged(ConfigKind.TOPIC, name, {}))
                continue
            change = _topic(name, topic_id, topic, tree)
        except (MalformedNode, ValueError) as error:
            unreadable[name] = str(error)
            picture.faults.append(
                f"topic {name} has no leaders, because its state in the coordination store cannot be read: {error}."
                " Its logs are left as they are. Repair the node or restore it from a backup"
            )
            continue
        picture.state.apply(change)
    return unreadable


def _topic(name: str, topic_id: UUID, topic: TopicNode, tree: Tree) -> Change:
    partitions = []
    for index in range(len(topic.partitions)):
        path = PartitionStateNode.path(name, index)
        node = tree.get(path)
        adding = topic.adding_replicas.get(index, ())
        removing = topic.removing_replicas.get(index, ())
        if node is None:
            partitions.append(
                PartitionState(topic.partitions[index], adding=adding, removing=removing)
            )
            continue
        state = PartitionStateNode.decode(path, node.data)
        partitions.append(
            PartitionState(
                topic.partitions[index],
                state.isr,
                state.leader,
                state.leader_epoch,
                node.version,
                adding,
                removing,
                state.elr,
                state.last_known_elr,
                state.min_isr,
                state.emptied,
                state.unclean_epoch,
                state.crashed_epoch,
                state.last_known_epoch,
                state.former_epochs,
            )
        )
    return TopicCreated(name, topic_id, tuple(partitions))


def _leftovers(picture: Picture, name: str, topic: TopicNode, tree: Tree) -> list[Group]:
    """What a deletion that was interrupted still has to remove."""
    groups: list[Group] = []
    for index in range(len(topic.partitions)):
        path = PartitionStateNode.path(name, index)
        if path in tree:
            groups.append((Delete(path), Delete(path.removesuffix("/state"))))
    groups.append(
        (
            Delete(PartitionStateNode.folder(name)),
            *picture.nodes.remove(ConfigNode.path("topics", name)),
            Delete(TopicNode.path(name)),
        )
    )
    return groups
