"""What a store that is made from log directories says of topics, leader epochs and configs."""

import asyncio
from uuid import UUID

from headrace.broker.cluster.store_recovery import (
    KEEP_EVERYTHING,
    LeftOut,
    Recovered,
    find_logs,
    recover,
)
from headrace.broker.cluster.topic_creation import internal_topic_configs
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.nodes import ConfigNode, PartitionStateNode, TopicNode
from headrace.ids import text_of_id
from headrace.log.files.checkpoint import LEADER_EPOCH_FILE, write_epochs, write_topic_id
from headrace.settings.broker_settings import BrokerSettings
from headrace.testing.memory_disk import MemoryDisk

OLD, NEW = UUID(int=1), UUID(int=2)
INTERNAL = internal_topic_configs(BrokerSettings.from_properties({}), replication_factor=1)


class World:
    """A log directory, and the store that is made from it."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.make_directory("/data")

    def add(self, name: str, topic_id: UUID | None, epoch: int | None) -> None:
        """A log; without `epoch` its checkpoint is torn."""
        path = f"/data/{name}"
        self.disk.make_directory(path)
        if topic_id is not None:
            write_topic_id(self.disk, path, topic_id)
        if epoch is None:
            self.disk.replace(f"{path}/{LEADER_EPOCH_FILE}", b"")
        else:
            write_epochs(self.disk, f"{path}/{LEADER_EPOCH_FILE}", [(epoch, 0)], durable=True)

    def recover(self) -> Recovered:
        return asyncio.run(self._recover())

    async def _recover(self) -> Recovered:
        store = EmbeddedStore(None)
        await store.open()
        try:
            logs = find_logs(self.disk, ["/data"])
            recovered = await recover(store, "cluster", 1, logs, 1, INTERNAL)
            self.ids: dict[str, str] = {}
            self.configs: dict[str, dict[str, str]] = {}
            self.epochs: dict[str, int] = {}
            for name, count in recovered.topics.items():
                node = await store.get(TopicNode.path(name))
                assert node is not None
                self.ids[name] = TopicNode.decode(name, node.data).topic_id
                path = ConfigNode.path("topics", name)
                node = await store.get(path)
                assert node is not None
                self.configs[name] = ConfigNode.decode(path, node.data).config
                for index in range(count):
                    path = PartitionStateNode.path(name, index)
                    node = await store.get(path)
                    assert node is not None
                    state = PartitionStateNode.decode(path, node.data)
                    self.epochs[f"{name}-{index}"] = state.leader_epoch
            return recovered
        finally:
            await store.close()


def test_topics_keep_everything_and_group_offsets_are_compacted() -> None:
    world = World()
    world.add("orders-0", NEW, 3)
    world.add("__consumer_offsets-0", OLD, 3)
    world.recover()
    offsets = {"__consumer_offsets": INTERNAL["__consumer_offsets"]}
    assert world.configs == {"orders": KEEP_EVERYTHING, **offsets}
    assert KEEP_EVERYTHING == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }


def test_every_partition_of_a_found_topic_starts_above_the_epochs_of_its_log() -> None:
    """0: a torn checkpoint; 2: no log; 4: no topic id, which the broker gives to a log without one."""
    world = World()
    world.add("orders-0", NEW, None)
    world.add("orders-1", NEW, 7)
    world.add("orders-3", NEW, 2)
    world.add("orders-4", None, 5)
    assert world.recover() == Recovered({"orders": 5}, [])
    assert world.epochs == {
        "orders-0": 1_000,
        "orders-1": 1_007,
        "orders-2": 1_000,
        "orders-3": 1_002,
        "orders-4": 1_005,
    }


def test_two_topics_of_one_name() -> None:
    world = World()
    world.add("orders-0", OLD, 9)
    world.add("orders-1", NEW, 0)
    world.add("orders-2", NEW, 0)
    world.add("single-0", NEW, 0)
    world.add("single-1", OLD, 1)
    world.add("nameless-0", None, 1)
    recovered = world.recover()
    assert recovered.topics == {"orders": 3, "single": 2}
    assert world.ids["orders"] == text_of_id(NEW)
    assert world.ids["single"] == text_of_id(OLD)
    left_out = {each.path for each in recovered.left_out}
    assert left_out == {"/data/orders-0", "/data/single-0", "/data/nameless-0"}
    assert LeftOut("/data/nameless-0", "nothing there says to which topic it belongs") in (
        recovered.left_out
    )


def test_internal_topics_are_compacted_as_before() -> None:
    world = World()
    world.add("__consumer_offsets-0", OLD, 1)
    world.add("__transaction_state-0", NEW, 1)
    world.recover()
    assert world.configs["__consumer_offsets"]["cleanup.policy"] == "compact"
    transactions = world.configs["__transaction_state"]
    assert transactions["cleanup.policy"] == "compact"
    assert transactions["min.insync.replicas"] == "1", "the one replica has to be enough"
    assert "retention.ms" not in transactions
