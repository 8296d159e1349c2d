"""What all brokers must agree on once everything has healed: topics, ids, roles, epochs, configs, and what lies on their disks.

The store is the measure; each function returns what is not so yet, in words, or None.
"""

from headrace.broker.wiring import BrokerComponents
from headrace.controller.cluster_state import ClusterState
from headrace.coordination.nodes import (
    BrokerNode,
    ConfigNode,
    ControllerNode,
    DeletedTopicNode,
    PartitionStateNode,
    TopicNode,
)
from headrace.ids import text_of_id
from headrace.testing.memory_store import MemoryTree
from headrace.testing.simulation.broker import LOG_DIRS, SimulatedBroker


def disagreement(tree: MemoryTree, brokers: dict[int, SimulatedBroker]) -> str | None:
    """What a broker holds for true that the store does not say, or the other way round."""
    stored = _stored(tree)
    for path in tree.get_tree(DeletedTopicNode.ROOT):
        return f"{path} waits for a broker to remove its replicas"
    for broker in brokers.values():
        parts = broker.parts
        if parts is None:
            return f"{broker.name} does not run"
        believed = _believed(parts.cluster.state)
        for subject in sorted(stored.keys() | believed.keys()):
            if stored.get(subject) != believed.get(subject):
                return (
                    f"{broker.name} believes of {subject}: {believed.get(subject)}, "
                    f"stored is {stored.get(subject)}"
                )
        problem = _wrong_role(broker, parts) or _wrong_directory(broker, parts)
        if problem is not None:
            return problem
    return None


def _stored(tree: MemoryTree) -> dict[str, object]:
    found: dict[str, object] = {}
    controller = tree.get(ControllerNode.PATH)
    found["controller"] = None if controller is None else _seat(controller.data)
    for path, node in tree.get_tree(BrokerNode.ROOT).items():
        found[f"broker {path.rpartition('/')[2]}"] = node.created_txn
    for path, node in tree.get_tree(TopicNode.ROOT).items():
        name, _, rest = path.removeprefix(TopicNode.ROOT + "/").partition("/")
        if not rest:
            topic = TopicNode.decode(name, node.data)
            found[f"topic {name}"] = topic.topic_id
            for index, replicas in topic.partitions.items():
                found[f"replicas of {name}-{index}"] = replicas
        else:
            state = PartitionStateNode.decode(path, node.data)
            found[f"state of {name}-{rest.split('/')[1]}"] = (
                state.leader,
                state.leader_epoch,
                sorted(state.isr),
                state.min_isr,
            )
    for path, node in tree.get_tree(ConfigNode.ROOT).items():
        config = ConfigNode.decode(path, node.data).config
        if config:
            folder, name = ConfigNode.split(path)
            found[f"config of {folder} {name}"] = config
    for path in tree.get_tree(DeletedTopicNode.ROOT):
        found[f"deleted {path}"] = True
    return found


def _seat(data: bytes) -> int:
    return ControllerNode.decode(data).brokerid


def _believed(state: ClusterState) -> dict[str, object]:
    found: dict[str, object] = {"controller": state.controller_id}
    for broker_id, broker in state.brokers.items():
        found[f"broker {broker_id}"] = broker.epoch
    for name, topic in state.topics.items():
        found[f"topic {name}"] = text_of_id(topic.topic_id)
        for index, partition in enumerate(topic.partitions):
            found[f"replicas of {name}-{index}"] = partition.replicas
            found[f"state of {name}-{index}"] = (
                partition.leader,
                partition.leader_epoch,
                sorted(partition.isr),
                partition.min_isr,
            )
    folders = {2: "topics", 4: "brokers", 16: "clients", 32: "groups"}
    for (kind, name), config in state.configs.items():
        if config:
            found[f"config of {folders[kind]} {name or '<default>'}"] = dict(config)
    for topic_id in state.deleted_topics:
        found[f"deleted {DeletedTopicNode.path(topic_id)}"] = True
    return found


def _wrong_role(broker: SimulatedBroker, parts: BrokerComponents) -> str | None:
    """A partition that is hosted in another role than the cluster state says, or is not hosted, or should not be."""
    hosted = {partition.topic_partition: partition for partition in parts.partitions}
    for name, topic in parts.cluster.state.topics.items():
        for index, state in enumerate(topic.partitions):
            partition = parts.partitions.get(name, index)
            if broker.broker_id not in state.replicas:
                continue
            if partition is None:
                return f"{broker.name} does not host {name}-{index}"
            del hosted[partition.topic_partition]
            leads = state.leader == broker.broker_id
            if partition.topic_id != topic.topic_id:
                return f"{broker.name} hosts {name}-{index} of another topic"
            if (partition.is_leader, partition.leader_epoch) != (leads, state.leader_epoch):
                return (
                    f"{broker.name} {'leads' if partition.is_leader else 'does not lead'} "
                    f"{name}-{index} in epoch {partition.leader_epoch}, which is {state}"
                )
    return f"{broker.name} hosts {sorted(hosted)} besides" if hosted else None


def _wrong_directory(broker: SimulatedBroker, parts: BrokerComponents) -> str | None:
    """A log that lies on the disk and is not hosted. Logs that were set aside are kept on purpose."""
    hosted = {str(partition.topic_partition) for partition in parts.partitions}
    for directory in LOG_DIRS:
        if not broker.disk.exists(directory):
            continue
        for name in broker.disk.list_directories(directory):
            if name not in hosted and not name.endswith("-stray"):
                return f"{broker.name} has {directory}/{name} on its disk"
    return None
