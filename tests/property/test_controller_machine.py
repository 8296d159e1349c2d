"""Anything may happen to a cluster in any order; what must always hold, holds."""

from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from headrace.controller.brokers import ControlledShutdown
from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigOperation, ConfigWish
from headrace.controller.core import ControllerSettings, Event
from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.controller.deletions import DeleteTopics, RemoveReplicas
from headrace.controller.elections import complete_copies
from headrace.controller.isr import AlterPartition, IsrMember, IsrProposal
from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.controller.producer_ids import AllocateProducerIds
from headrace.controller.reassignment import AlterReassignments
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import ALL_BROKERS, NO_LEADER, ConfigKind
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel

BROKERS = st.integers(0, 4)
TOPICS = st.sampled_from(["a", "b", "c.d", "c_d"])
INDEXES = st.integers(0, 3)
REPLICAS = st.lists(BROKERS, min_size=1, max_size=4, unique=True).map(tuple)


class AnyCluster(RuleBasedStateMachine):
    """Five brokers, a handful of topics, and no mercy."""

    events: Bundle[Event[object]] = Bundle("events")

    def __init__(self) -> None:
        super().__init__()
        self.model = ClusterModel(0, 1, 2)
        self.leaders: dict[tuple[UUID, int, int], int] = {}
        self.epochs: dict[tuple[UUID, int], tuple[int, int]] = {}
        self.producer_ids = -1

    @rule(broker=BROKERS, clean=st.booleans())
    def broker_comes_or_restarts(self, broker: int, clean: bool) -> None:
        self.model.register(broker, clean=clean)

    @rule(brokers=st.sets(BROKERS, min_size=1, max_size=3))
    def brokers_go(self, brokers: set[int]) -> None:
        self.model.lose(*brokers)

    @rule(broker=BROKERS, clean=st.booleans())
    def broker_restarts_while_controllers_change(self, broker: int, clean: bool) -> None:
        self.model._register(broker, clean=clean)
        self.model.take_over()

    @rule()
    def another_controller(self) -> None:
        self.model.take_over()

    @rule(
        target=events,
        name=TOPICS,
        partitions=st.integers(1, 4),
        factor=st.integers(1, 4),
        min_isr=st.integers(1, 3),
    )
    def create(self, name: str, partitions: int, factor: int, min_isr: int) -> Event[object]:
        configs = {"min.insync.replicas": str(min_isr)} if min_isr > 1 else {}
        topic = NewTopic(
            name=name, num_partitions=partitions, replication_factor=factor, configs=configs
        )
        return self._do(CreateTopics(topics=(topic,)))

    @rule(target=events, name=TOPICS, count=st.integers(1, 6))
    def grow(self, name: str, count: int) -> Event[object]:
        return self._do(CreatePartitions(topics=(MorePartitions(name=name, count=count),)))

    @rule(target=events, name=TOPICS)
    def delete(self, name: str) -> Event[object]:
        return self._do(DeleteTopics(names=(name,)))

    @rule(target=events, broker=BROKERS)
    def remove_replicas(self, broker: int) -> Event[object]:
        ids = tuple(self.model.state.deleted_topics)
        return self._do(RemoveReplicas(broker_id=broker, topic_ids=ids))

    @precondition(lambda self: bool(self._led()))
    @rule(data=st.data(), isr=REPLICAS, stale=st.integers(0, 5))
    def propose(self, data: st.DataObject, isr: tuple[int, ...], stale: int) -> None:
        name, index = data.draw(st.sampled_from(self._led()))
        partition = self.model.partition(name, index)
        epoch = self.model.epoch(partition.leader)
        proposal = IsrProposal(
            topic_id=self.model.topic_id(name),
            partition=index,
            leader_epoch=partition.leader_epoch - (stale == 1),
            partition_epoch=partition.partition_epoch - (stale == 2),
            new_isr=tuple(IsrMember(broker_id=b) for b in {partition.leader, *isr}),
        )
        answer = self.model.do(
            AlterPartition(
                broker_id=partition.leader,
                broker_epoch=epoch - (stale == 3),
                proposals=(proposal,),
            )
        )
        if stale == 3:
            assert answer.error is ErrorCode.STALE_BROKER_EPOCH
        elif stale in (1, 2):
            assert answer.partitions[0].error is not ErrorCode.NONE
            assert self.model.partition(name, index) == partition

    @rule(target=events, unclean=st.booleans())
    def elect(self, unclean: bool) -> Event[object]:
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        return self._do(ElectLeaders(election_type=kind))

    @rule(target=events, name=TOPICS, index=INDEXES, replicas=st.none() | REPLICAS)
    def reassign(self, name: str, index: int, replicas: tuple[int, ...] | None) -> Event[object]:
        before = self.model.state.partition(name, index)
        targets = {TopicPartition(name, index): replicas}
        event = self._do(AlterReassignments(targets=targets))
        if before is not None and complete_copies(before):
            kept = complete_copies(before) & complete_copies(self.model.partition(name, index))
            assert kept, f"{before} to {replicas}: {self.model.partition(name, index)}"
        return event

    @rule(target=events, name=TOPICS, allowed=st.booleans())
    def allow_unclean(self, name: str, allowed: bool) -> Event[object]:
        edit = ConfigEdit(key="unclean.leader.election.enable", value=str(allowed).lower())
        wish = ConfigWish(kind=ConfigKind.TOPIC, name=name, edits=(edit,))
        return self._do(AlterConfigs(wishes=(wish,)))

    @rule(target=events, name=TOPICS | st.just(ALL_BROKERS), value=st.none() | st.integers(1, 3))
    def change_minimum(self, name: str, value: int | None) -> Event[object]:
        kind = ConfigKind.BROKER if name == ALL_BROKERS else ConfigKind.TOPIC
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        text = None if value is None else str(value)
        edit = ConfigEdit(key="min.insync.replicas", operation=operation, value=text)
        return self._do(AlterConfigs(wishes=(ConfigWish(kind=kind, name=name, edits=(edit,)),)))

    @rule(default=st.integers(1, 3))
    def another_controller_with_another_default(self, default: int) -> None:
        self.model.settings = ControllerSettings(min_insync_replicas=default)
        self.model.take_over()

    @rule(broker=BROKERS)
    def shut_down(self, broker: int) -> None:
        if broker in self.model.registrations:
            epoch = self.model.epoch(broker)
            self.model.do(ControlledShutdown(broker_id=broker, broker_epoch=epoch))

    @rule(broker=BROKERS)
    def allocate(self, broker: int) -> None:
        if broker in self.model.registrations:
            epoch = self.model.epoch(broker)
            block = self.model.do(AllocateProducerIds(broker_id=broker, broker_epoch=epoch))
            assert block.first > self.producer_ids
            self.producer_ids = block.first + block.length - 1

    @rule(event=events, groups=st.integers(0, 6))
    def controller_dies_while_writing(self, event: Event[object], groups: int) -> None:
        self.model.crash_after(event, groups)

    @invariant()
    def the_state_is_sound_and_the_same_everywhere(self) -> None:
        self.model.check()

    @invariant()
    def every_partition_has_its_minimum_and_eligible_leaders_only_below_it(self) -> None:
        core = self.model.machine.core
        for name, topic in self.model.state.topics.items():
            wanted = core.configured_min_isr(self.model.state.config(ConfigKind.TOPIC, name))
            for index, partition in enumerate(topic.partitions):
                where = f"{name}-{index}: {partition}"
                assert partition.is_new or partition.min_isr == wanted, where
                assert not partition.elr or len(partition.isr) < partition.needed_isr, where

    @invariant()
    def epochs_never_decrease_and_have_one_leader(self) -> None:
        for topic in self.model.state.topics.values():
            for index, partition in enumerate(topic.partitions):
                where = (topic.topic_id, index)
                before = self.epochs.get(where, (-1, -1))
                now = (partition.leader_epoch, partition.partition_epoch)
                assert now[0] >= before[0], f"leader epoch of {topic.name}-{index}"
                assert now[1] >= before[1], f"partition epoch of {topic.name}-{index}"
                self.epochs[where] = now
                if partition.leader != NO_LEADER:
                    epoch_of_leader = self.model.epoch(partition.leader)
                    key = (*where, partition.leader_epoch)
                    # The same incarnation, not only the same broker: a restarted leader needs a
                    # leader epoch of its own.
                    assert self.leaders.setdefault(key, epoch_of_leader) == epoch_of_leader

    @invariant()
    def leaders_are_alive_and_partitions_with_a_living_isr_are_led(self) -> None:
        live = set(self.model.registrations)
        leaving = {b.broker_id for b in self.model.state.brokers.values() if b.shutting_down}
        for name, topic in self.model.state.topics.items():
            for index, partition in enumerate(topic.partitions):
                where = f"{name}-{index}: {partition}"
                assert partition.leader == NO_LEADER or partition.leader in live, where
                assert set(partition.isr) <= live, where
                if set(partition.isr) & (live - leaving):
                    assert partition.leader != NO_LEADER, where

    @precondition(lambda self: bool(self.model.state.topics))
    @rule()
    def everyone_comes_back(self) -> None:
        """After a clean restart of all, every partition that was not offline is led."""
        offline = {
            (name, index)
            for name, topic in self.model.state.topics.items()
            for index, partition in enumerate(topic.partitions)
            if partition.leader == NO_LEADER
        }
        for broker in range(5):
            self.model._register(broker, clean=True)
        self.model.take_over()
        for name, topic in self.model.state.topics.items():
            for index, partition in enumerate(topic.partitions):
                if (name, index) not in offline:
                    assert partition.leader != NO_LEADER, f"{name}-{index}: {partition}"

    def _led(self) -> list[TopicPartition]:
        return [
            TopicPartition(name, index)
            for name, topic in self.model.state.topics.items()
            for index, partition in enumerate(topic.partitions)
            if partition.leader != NO_LEADER
        ]

    def _do(self, event: Event[object]) -> Event[object]:
        self.model.do(event)
        return event


TestAnyCluster = AnyCluster.TestCase
TestAnyCluster.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
