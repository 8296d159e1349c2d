"""Whatever the controller publishes, cut into whatever batches: a broker hosts what the newest cluster state says.

The changes come from the real controller core. They reach one broker late and in random batches, with snapshots, lost
sessions and restarts in between. At the end the broker must equal one that got nothing but the final snapshot.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.broker.cluster.cluster_feed import ClusterFeed, FeedListener
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.coordinators.coordinator_table import (
    CoordinatorEntry,
    CoordinatorTable,
    KeyType,
)
from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.broker.telemetry.traffic import Traffic
from headrace.controller.changes import Change, ChangeBatch
from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigWish
from headrace.controller.core import Event
from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.controller.deletions import DeleteTopics, RemoveReplicas
from headrace.controller.isr import AlterPartition, IsrMember, IsrProposal
from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.controller.reassignment import AlterReassignments
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import ConfigKind
from headrace.coordination.lease import ENDLESS
from headrace.coordination.store import SessionState
from headrace.coordinator.group.groups import GroupRuntime
from headrace.ids import TopicPartition
from headrace.internal_topics import CONSUMER_OFFSETS
from headrace.log.log_dirs import LogDirs
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.testing.memory_disk import MemoryDisk
from tests.unit.controller.cluster_model import ClusterModel

US = 1
LOG_DIR = "/data"
BROKERS = st.integers(0, 3)
OTHERS = st.sampled_from([0, 2, 3])
TOPICS = st.sampled_from(["a", "b", CONSUMER_OFFSETS])
INDEXES = st.integers(0, 2)
REPLICAS = st.lists(BROKERS, min_size=1, max_size=3, unique=True).map(tuple)
SETTINGS = BrokerSettings.from_properties({"node.id": str(US)}, default_log_dir=LOG_DIR)


class Coordinated:
    """Which partitions of the offsets topic are coordinated here, as the runtime of groups would know."""

    topic = CONSUMER_OFFSETS

    def __init__(self) -> None:
        self.partitions: set[int] = set()

    def elected(self, partition: int, shard_log: object) -> None:
        self.partitions.add(partition)

    def resigned(self, partition: int) -> None:
        self.partitions.discard(partition)


class Followed:
    """Which partition is followed at which leader."""

    def __init__(self) -> None:
        self.leaders: dict[Partition, int] = {}

    def follow(self, partition: Partition, leader_id: int, on_disk_failed: object) -> None:
        self.leaders.pop(partition, None)
        if leader_id >= 0:
            self.leaders[partition] = leader_id

    def leave(self, partition: Partition) -> None:
        self.leaders.pop(partition, None)


class Hosted(NamedTuple):
    """What a broker makes of one partition."""

    topic_id: UUID
    leader_epoch: int
    leader_id: int
    # number of replicas, ISR, partition epoch, ISR needed for acks=all; None where it follows
    leads: tuple[int, frozenset[int], int, int] | None
    follows: int | None


class HostingBroker:
    """The real `ReplicaHosting` over a disk in memory; nothing is ever fetched."""

    def __init__(self, disk: MemoryDisk, epoch: int, new_at_once: int | None = None) -> None:
        self.disk = disk
        self.epoch = epoch
        self.cluster = ClusterView(US, "a-cluster", tells_dialled_address=False)
        self.partitions = PartitionTable()
        ids = iter(range(1, 1 << 62))
        self.log_dirs = LogDirs(
            disk,
            [LOG_DIR],
            config_for=lambda _: SETTINGS.topic_defaults.to_log_config(producer_id_expiration_ms=1),
            new_id=lambda: UUID(int=(epoch << 64) + next(ids)),
        )
        self.log_dirs.open(0)
        self.groups = Coordinated()
        self.followed = Followed()
        self.removed_topics: list[UUID] = []
        self.replica_hosting = ReplicaHosting(
            cluster=self.cluster,
            partitions=self.partitions,
            log_dirs=self.log_dirs,
            coordinators=CoordinatorTable(
                CoordinatorEntry(
                    key_type=KeyType.GROUP,
                    runtime=cast(GroupRuntime, self.groups),
                    codec=lambda: 0,
                )
            ),
            fetchers=self.followed,
            live_settings=LiveSettings(SETTINGS),
            traffic=Traffic(),
            clock=lambda: 0,
            broker_epoch=lambda: self.epoch,
            on_topics_deleted=self._remove,
            lease=ENDLESS,
            new_at_once=new_at_once,
        )
        self.feed = ClusterFeed(
            self.cluster, after=(FeedListener("roles", self.replica_hosting.apply),)
        )
        self._remove([], self.log_dirs.leftovers)

    def _remove(self, topics: list[tuple[str, UUID]], paths: list[str]) -> None:
        for path in paths:
            self.disk.remove_tree(path)
        self.removed_topics += [topic_id for _, topic_id in topics]

    def die(self) -> None:
        for directory in self.log_dirs.online:
            directory.release()

    def hosted(self) -> dict[TopicPartition, Hosted]:
        return {each.topic_partition: self._hosted(each) for each in self.partitions}

    def _hosted(self, partition: Partition) -> Hosted:
        leader = partition.leader
        return Hosted(
            partition.topic_id,
            partition.leader_epoch,
            partition.leader_id,
            None
            if leader is None
            else (
                leader.replica_count,
                frozenset(leader.isr),
                leader.partition_epoch,
                leader.needed_isr,
            ),
            self.followed.leaders.get(partition),
        )

    def logs(self) -> dict[TopicPartition, UUID | None]:
        return {log.topic_partition: log.topic_id for log in self.log_dirs}

    def directories(self) -> set[str]:
        return set(self.disk.list_directories(LOG_DIR))


class RecordedModel(ClusterModel):
    """Hands each published batch on."""

    def __init__(self, *brokers: int, publish: Callable[[ChangeBatch], None]) -> None:
        self._publish = publish
        super().__init__(*brokers)

    def take_over(self, *, faults: int = 0) -> None:
        super().take_over(faults=faults)
        self._publish(self.snapshot())

    def do(self, event: Event[Any]) -> Any:
        offset = self._log.next_offset
        answer = super().do(event)
        batch = self._log.read(self.controller_epoch, offset)
        assert batch is not None
        self._publish(batch)
        return answer

    def snapshot(self) -> ChangeBatch:
        changes = tuple(self.state.snapshot())
        return ChangeBatch(self.controller_epoch, self._log.next_offset, changes, is_snapshot=True)


class AnyChanges(RuleBasedStateMachine):
    """Four brokers; number 1 is the real one."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: list[Change | ChangeBatch] = []  # changes; a snapshot stands for itself
        self.model = RecordedModel(0, US, 2, publish=self._published)
        self.broker = HostingBroker(MemoryDisk(), self.model.epoch(US))

    def _published(self, batch: ChangeBatch) -> None:
        self.unread += [batch] if batch.is_snapshot else batch.changes

    # ---- what happens to the cluster

    @rule(
        name=TOPICS,
        partitions=st.integers(1, 3),
        factor=st.integers(1, 3),
        min_isr=st.integers(1, 3),
    )
    def create(self, name: str, partitions: int, factor: int, min_isr: int) -> None:
        topic = NewTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs={"min.insync.replicas": str(min_isr)} if min_isr > 1 else {},
        )
        self.model.do(CreateTopics(topics=(topic,)))

    @rule(name=TOPICS)
    def delete(self, name: str) -> None:
        self.model.do(DeleteTopics(names=(name,)))

    @rule(name=TOPICS, partitions=st.integers(1, 3))
    def recreate(self, name: str, partitions: int) -> None:
        self.delete(name)
        self.create(name, partitions, 3, 1)

    @rule(name=TOPICS, count=st.integers(2, 4))
    def grow(self, name: str, count: int) -> None:
        self.model.do(CreatePartitions(topics=(MorePartitions(name=name, count=count),)))

    @rule(name=TOPICS, index=INDEXES, replicas=st.none() | REPLICAS)
    def reassign(self, name: str, index: int, replicas: tuple[int, ...] | None) -> None:
        self.model.do(AlterReassignments(targets={TopicPartition(name, index): replicas}))

    @precondition(lambda self: bool(self._led()))
    @rule(data=st.data(), isr=REPLICAS)
    def propose_isr(self, data: st.DataObject, isr: tuple[int, ...]) -> None:
        name, index = data.draw(st.sampled_from(self._led()))
        partition = self.model.partition(name, index)
        proposal = IsrProposal(
            topic_id=self.model.topic_id(name),
            partition=index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr=tuple(IsrMember(broker_id=each) for each in {partition.leader, *isr}),
        )
        self.model.do(
            AlterPartition(
                broker_id=partition.leader,
                broker_epoch=self.model.epoch(partition.leader),
                proposals=(proposal,),
            )
        )

    @rule(unclean=st.booleans())
    def elect(self, unclean: bool) -> None:
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        self.model.do(ElectLeaders(election_type=kind))

    @rule(name=TOPICS, min_isr=st.integers(1, 3))
    def configure(self, name: str, min_isr: int) -> None:
        edit = ConfigEdit(key="min.insync.replicas", value=str(min_isr))
        wish = ConfigWish(kind=ConfigKind.TOPIC, name=name, edits=(edit,))
        self.model.do(AlterConfigs(wishes=(wish,)))

    @rule(broker=OTHERS, clean=st.booleans())
    def another_broker_comes(self, broker: int, clean: bool) -> None:
        self.model.register(broker, clean=clean)

    @rule(broker=OTHERS)
    def another_broker_goes(self, broker: int) -> None:
        self.model.lose(broker)

    @rule()
    def another_controller(self) -> None:
        self.model.take_over()

    @precondition(lambda self: self.broker.removed_topics and self._is_registered())
    @rule()
    def report_removed_replicas(self) -> None:
        removed, self.broker.removed_topics = self.broker.removed_topics, []
        self.model.do(RemoveReplicas(broker_id=US, topic_ids=tuple(removed)))

    # ---- what happens to this broker

    @precondition(lambda self: self.unread)
    @rule(count=st.integers(1, 12))
    def read_changes(self, count: int) -> None:
        self._read(count)

    @rule()
    def fall_behind(self) -> None:
        self.unread = [self.model.snapshot()]

    @rule(limit=st.integers(1, 3))
    def apply_queued(self, limit: int) -> None:
        self.broker.replica_hosting.apply_queued(limit)

    @rule(new_at_once=st.none() | st.integers(0, 2))
    def settle_at_once(self, new_at_once: int | None) -> None:
        self.broker.replica_hosting._at_once = new_at_once

    @precondition(lambda self: self._is_registered())
    @rule(is_seen=st.booleans())
    def lose_the_session(self, is_seen: bool) -> None:
        self.broker.replica_hosting.session_changed(SessionState.LOST)
        self.model.registrations.pop(US)
        if is_seen:
            self.model.see()

    @precondition(lambda self: not self._is_registered())
    @rule(is_read_first=st.booleans())
    def register_again(self, is_read_first: bool) -> None:
        self.model.register(US)
        if is_read_first:
            self._read(len(self.unread))
        self.broker.epoch = self.model.epoch(US)
        self.broker.replica_hosting.registered()

    @rule(clean=st.booleans(), is_away_for_a_deletion_of=st.none() | TOPICS)
    def restart(self, clean: bool, is_away_for_a_deletion_of: str | None) -> None:
        self.broker.die()
        self.model.lose(US)
        if is_away_for_a_deletion_of is not None:
            self.delete(is_away_for_a_deletion_of)
        self.model.register(US, clean=clean)
        self.broker = HostingBroker(self.broker.disk, self.model.epoch(US))
        self.unread = [self.model.snapshot()]

    # ---- what must hold

    @invariant()
    def nothing_hosted_belongs_to_a_topic_that_is_gone(self) -> None:
        state = self.broker.cluster.state
        if not self._acts_on_its_state():
            return
        for partition in self.broker.partitions:
            name, index = partition.topic_partition
            topic = state.topics.get(name)
            assert topic is not None, f"{name}-{index} is hosted, but its topic is gone"
            assert topic.topic_id == partition.topic_id, f"{name}-{index} is an older topic's"
            known = topic.partitions[index]
            assert US in known.replicas, f"{name}-{index} is not this broker's"
            assert partition.leader_epoch <= known.leader_epoch, f"{name}-{index}"
            if partition.leader_epoch == known.leader_epoch:
                assert partition.leader_id == known.leader, f"{name}-{index}"
            if partition.is_leader:
                assert partition.leader_id == US, f"{name}-{index}"
                assert partition not in self.broker.followed.leaders, f"{name}-{index}"

    @invariant()
    def each_log_is_in_use_and_what_is_deleted_is_off_the_disk(self) -> None:
        if not self._acts_on_its_state():
            return
        hosted = {each.topic_partition: each.topic_id for each in self.broker.partitions}
        assert self.broker.logs() == hosted
        kept = {name for name in self.broker.directories() if not name.endswith("-stray")}
        assert kept == set(map(str, hosted))

    @invariant()
    def coordinated_is_what_is_led_of_the_offsets_topic(self) -> None:
        led = self.broker.partitions.of_topic(CONSUMER_OFFSETS) or {}
        assert self.broker.groups.partitions == {
            index for index, partition in led.items() if partition.is_leader
        }

    def teardown(self) -> None:
        if not self._is_registered():
            self.register_again(is_read_first=False)
        self._read(len(self.unread))
        self.broker.replica_hosting.apply_queued()
        final = self.model.snapshot()
        assert self.broker.cluster.state.snapshot() == list(final.changes)
        other = HostingBroker(MemoryDisk(), self.broker.epoch)
        other.feed.apply(final)
        assert self.broker.hosted() == other.hosted()
        assert self.broker.logs() == other.logs()
        assert self.broker.groups.partitions == other.groups.partitions
        assert not self.broker.replica_hosting.has_queued_roles

    # ----

    def _acts_on_its_state(self) -> bool:
        has_state = self.broker.cluster.state.version > 0
        return has_state and not self.broker.replica_hosting._needs_full_state

    def _is_registered(self) -> bool:
        return US in self.model.registrations

    def _read(self, count: int) -> None:
        """The first so many changes as one batch, or the snapshot that comes next, as often as there are any."""
        taken, self.unread = self.unread[:count], self.unread[count:]
        changes: list[Change] = []
        for each in taken:
            if isinstance(each, ChangeBatch):
                self._apply(changes)
                changes = []
                self.broker.feed.apply(each)
            else:
                changes.append(each)
        self._apply(changes)

    def _apply(self, changes: list[Change]) -> None:
        epoch = self.broker.cluster.state.controller_epoch
        self.broker.feed.apply(ChangeBatch(epoch, 0, tuple(changes)))

    def _led(self) -> list[TopicPartition]:
        return [
            TopicPartition(name, index)
            for name, topic in self.model.state.topics.items()
            for index, partition in enumerate(topic.partitions)
            if partition.leader in self.model.registrations
        ]


TestAnyChanges = AnyChanges.TestCase
TestAnyChanges.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
