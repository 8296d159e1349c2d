"""The driver on the embedded store: the controllership, the queue, conflicts, listeners."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest

from headrace.controller import driver as driver_module
from headrace.controller.brokers import ControlledShutdown
from headrace.controller.changes import ChangeBatch
from headrace.controller.cluster_state import ClusterState, follow
from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigWish
from headrace.controller.controllership import batches
from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.controller.deletions import DeleteTopics, RemoveReplicas
from headrace.controller.driver import NotController
from headrace.controller.isr import AlterPartition, IsrMember, IsrProposal
from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.controller.producer_ids import AllocateProducerIds
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import ConfigKind
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.membership import (
    BrokerRegistration,
    cluster_id,
    prepare,
)
from headrace.coordination.nodes import (
    BrokerNode,
    ClusterIdNode,
    ControllerNode,
    PartitionStateNode,
)
from headrace.coordination.store import Create, Delete, Operation, Set, Store, StoreFailed
from headrace.testing.memory_store import MemoryStore, MemoryTree
from headrace.wire.error_code import ErrorCode
from tests.support.controllers import make_driver
from tests.unit.controller.cluster_model import PlainRules


class Broker:
    """What a broker's wiring does with the driver, without the broker."""

    def __init__(
        self,
        store: Store,
        broker_id: int,
        previous_epoch: int = -1,
        heard: asyncio.Event | None = None,
    ) -> None:
        node = BrokerNode(
            listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
            endpoints=(f"PLAINTEXT://[::1]:{9092 + broker_id}",),
            host="::1",
            port=9092 + broker_id,
            timestamp="1",
            previous_broker_epoch=previous_epoch,
        )
        self.registration = BrokerRegistration(store, broker_id, node)
        self.driver = make_driver(store, broker_id, PlainRules())
        self.state = ClusterState()
        self.batches: list[ChangeBatch] = []
        self.heard = heard or asyncio.Event()
        self.driver.listen(self._hear)

    def _hear(self, batch: ChangeBatch) -> None:
        self.batches.append(batch)
        self.state = follow(self.state, batch)
        self.heard.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.heard.wait()
            self.heard.clear()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Broker"]:
        await self.registration.register()
        task = asyncio.create_task(self.driver.run())
        try:
            async with asyncio.timeout(10):
                await self.driver.ready()
            yield self
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with suppress(StoreFailed):  # a closed store has no registrations
                await self.registration.withdraw()


@asynccontextmanager
async def opened(path: Path | None = None) -> AsyncIterator[EmbeddedStore]:
    store = EmbeddedStore(path)
    await store.open()
    try:
        await prepare(store)
        yield store
    finally:
        await store.close()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(main())


def topics(*names: str, partitions: int = 1) -> CreateTopics:
    return CreateTopics(
        topics=tuple(NewTopic(name=name, num_partitions=partitions) for name in names)
    )


def test_a_single_broker_is_its_own_controller() -> None:
    async def story() -> None:
        async with opened() as store, Broker(store, 0).running() as broker:
            driver = broker.driver
            assert driver.is_active
            assert (driver.controller_id, broker.state.controller_id) == (0, 0)
            (answer,) = await driver.ask(topics("t", partitions=3))
            assert answer.error is ErrorCode.NONE
            assert len(broker.state.topics["t"].partitions) == 3, "told before we were answered"
            endpoint = broker.state.brokers[0].endpoint("PLAINTEXT")
            assert endpoint is not None
            assert (endpoint.host, endpoint.port) == ("::1", 9092)
            await driver.ask(CreatePartitions(topics=(MorePartitions(name="t", count=4),)))
            edit = ConfigEdit(key="unclean.leader.election.enable", value="true")
            wish = ConfigWish(kind=ConfigKind.TOPIC, name="t", edits=(edit,))
            await driver.ask(AlterConfigs(wishes=(wish,)))
            assert broker.state.config(ConfigKind.TOPIC, "t") == {edit.key: "true"}
            await driver.balance_leaders()
            assert await driver.ask(ElectLeaders()) == ()
            shutdown = await driver.ask(
                ControlledShutdown(broker_id=0, broker_epoch=broker.registration.epoch)
            )
            assert len(shutdown.remaining) == 4
            (gone,) = await driver.ask(DeleteTopics(names=("t",)))
            assert not broker.state.topics
            assert list(broker.state.deleted_topics) == [gone.topic_id]
            await driver.ask(RemoveReplicas(broker_id=0, topic_ids=(gone.topic_id,)))
            assert not broker.state.deleted_topics
            assert broker.state.snapshot() == driver.state.snapshot()

    run(story)


def test_everything_survives_a_restart_with_new_leader_epochs(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    ids: list[UUID] = []

    async def first() -> None:
        async with opened(path) as store, Broker(store, 0).running() as broker:
            assert await cluster_id(store, "first") == "first"
            (answer,) = await broker.driver.ask(topics("t", partitions=2))
            ids.append(answer.topic_id)
            block = await broker.driver.ask(
                AllocateProducerIds(broker_id=0, broker_epoch=broker.registration.epoch)
            )
            assert (block.first, block.length) == (0, 1000)

    async def second() -> None:
        async with opened(path) as store, Broker(store, 0).running() as broker:
            assert await cluster_id(store, "second") == "first"
            assert broker.state.topics["t"].topic_id == ids[0]
            for partition in broker.state.topics["t"].partitions:
                assert (partition.leader, partition.leader_epoch) == (0, 1)
            assert broker.state.controller_epoch == 2
            block = await broker.driver.ask(
                AllocateProducerIds(broker_id=0, broker_epoch=broker.registration.epoch)
            )
            assert block.first == 1000
            late = await broker.driver.ask(
                AllocateProducerIds(broker_id=0, broker_epoch=broker.registration.epoch - 1)
            )
            assert late.error is ErrorCode.STALE_BROKER_EPOCH

    run(first)
    run(second)


def test_controllership_goes_to_the_next_and_the_last_one_is_fenced() -> None:
    async def story() -> None:
        heard = asyncio.Event()
        async with opened() as store, Broker(store, 1, heard=heard).running() as second:
            assert second.driver.is_active
            async with Broker(store, 0, heard=heard).running() as other:
                assert not other.driver.is_active
                assert other.driver.controller_id == 1
                with pytest.raises(NotController) as refused:
                    await other.driver.ask(topics("t"))
                assert refused.value.controller_id == 1
                # By hand, as operators do to move the controller.
                await store.delete(ControllerNode.PATH)
                both = (other, second)
                await other.until(lambda: any(b.state.controller_epoch == 2 for b in both))
                (active,) = (b for b in both if b.state.controller_epoch == 2)
                await active.driver.ask(topics("t"))
                assert set(active.state.brokers) == {0, 1}

    run(story)


def test_a_controller_that_others_took_for_dead_comes_back_with_new_epochs() -> None:
    async def story() -> None:
        async with opened() as store, Broker(store, 0).running() as broker:
            await broker.driver.ask(topics("t"))
            renewing = asyncio.create_task(broker.registration.run())
            before = broker.registration.epoch
            removals = [Delete(BrokerNode.path(0)), Delete(ControllerNode.PATH)]
            await store.multi(removals)
            await broker.until(
                lambda: (
                    broker.state.controller_epoch == 2
                    and 0 in broker.state.brokers
                    and broker.state.brokers[0].epoch > before
                    and broker.state.topics["t"].partitions[0].leader == 0
                )
            )
            assert broker.state.topics["t"].partitions[0].leader_epoch > 0
            renewing.cancel()

    run(story)


def test_a_controller_that_does_not_know_yet_can_write_nothing() -> None:
    async def story() -> None:
        async with opened() as store, Broker(store, 0).running() as broker:
            # Another one was elected; the news has not arrived.
            await store.set("/controller_epoch", b"7", version=1)
            with pytest.raises(NotController):
                await broker.driver.ask(topics("t"))
            assert await store.get("/brokers/topics/t") is None

    run(story)


def test_a_conflict_is_read_again_and_decided_again() -> None:
    """KAFKA-2729: a stale version must not be tried for ever."""

    async def story() -> None:
        async with opened() as store, Broker(store, 0).running() as broker:
            await broker.driver.ask(topics("t"))
            path = PartitionStateNode.path("t", 0)
            node = await store.get(path)
            assert node is not None
            await store.set(path, node.data, version=0)
            (answer,) = await broker.driver.ask(DeleteTopics(names=("t",)))
            assert answer.error is ErrorCode.NONE
            assert await store.children("/brokers/topics") == []
            assert broker.batches[-2].is_snapshot
            assert not broker.state.topics

    run(story)


def test_brokers_that_come_and_go_are_seen() -> None:
    async def story() -> None:
        async with opened() as store, Broker(store, 0).running() as broker:
            follower = Broker(store, 1)
            await follower.registration.register()
            await broker.until(lambda: set(broker.state.brokers) == {0, 1})
            await broker.driver.ask(topics("t", partitions=2))
            assert broker.state.topics["t"].partitions[1].leader == 1
            await follower.registration.withdraw()
            await broker.until(lambda: broker.state.topics["t"].partitions[1].leader == -1)

    run(story)


def test_others_pull_the_changes() -> None:
    async def story() -> None:
        async with opened() as store, Broker(store, 0).running() as broker:
            driver = broker.driver
            snapshot = await driver.pull(-1, -1)
            assert snapshot.is_snapshot
            epoch, offset = snapshot.controller_epoch, snapshot.next_offset
            assert (await driver.pull(epoch, offset)).changes == ()
            async with asyncio.TaskGroup() as tasks:
                pulling = tasks.create_task(driver.pull(epoch, offset, max_wait_ms=10_000))
                await asyncio.sleep(0)
                await driver.ask(topics("t"))
            batch = pulling.result()
            assert not batch.is_snapshot
            assert batch.next_offset == offset + 1
            replica = follow(follow(ClusterState(), snapshot), batch)
            assert replica.snapshot() == broker.state.snapshot()

    run(story)


def test_whoever_waits_hears_that_the_driver_has_ended() -> None:
    async def story() -> None:
        async with opened() as store:
            async with Broker(store, 0).running() as broker:
                pulling = asyncio.create_task(broker.driver.pull(1, 10**6, max_wait_ms=0))
                await pulling
                batch = await broker.driver.pull(-1, -1)
                waiting = asyncio.create_task(
                    broker.driver.pull(
                        batch.controller_epoch, batch.next_offset, max_wait_ms=60_000
                    )
                )
                await asyncio.sleep(0)
            with pytest.raises(NotController):
                await waiting
            with pytest.raises(NotController):
                await broker.driver.ask(topics("t"))

    run(story)


def test_garbage_costs_one_topic_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with opened() as store:
            await store.create("/brokers/topics/bad", b"garbage")
            await store.create("/brokers/ids/8", b"garbage", ephemeral=True)
            await store.create("/config/topics/bad", b"{}")
            await store.create("/admin/deleted_topics/bad", b"{}")
            await store.create("/brokers/epochs/x", b"garbage")
            await store.create("/brokers/epochs/7", b"\xff")
            async with Broker(store, 0).running() as broker:
                await broker.driver.ask(topics("good"))
                assert set(broker.state.topics) == {"good"}

    run(story)
    for path in ("topic bad", "/brokers/ids/8", "/config/topics/bad", "/admin/deleted_topics/bad"):
        assert path in caplog.text
    for path in ("/brokers/epochs/x", "/brokers/epochs/7"):
        assert path in caplog.text


def test_an_unreadable_config_deletes_nothing_and_keeps_the_minimum() -> None:
    async def story() -> None:
        async with opened() as store:
            async with Broker(store, 0).running() as broker:
                edit = ConfigEdit(key="min.insync.replicas", value="3")
                await broker.driver.ask(topics("t"))
                wish = ConfigWish(kind=ConfigKind.TOPIC, name="t", edits=(edit,))
                await broker.driver.ask(AlterConfigs(wishes=(wish,)))
            await store.set("/config/topics/t", b'{"version":1,"config":{"a":"\xff"}}', version=0)
            async with Broker(store, 0).running() as broker:
                config = broker.state.config(ConfigKind.TOPIC, "t")
                assert (config["retention.ms"], config["retention.bytes"]) == ("-1", "-1")
                assert config["min.insync.replicas"] == "3"
                partition = broker.state.partition("t", 0)
                assert partition is not None
                assert partition.min_isr == 3

    run(story)


def test_no_producer_id_is_given_out_after_an_unreadable_block() -> None:
    async def story() -> None:
        async with opened() as store:
            await store.create("/latest_producer_id_block", b"garbage")
            async with Broker(store, 0).running() as broker:
                await broker.driver.ask(topics("t"))
                allocate = AllocateProducerIds(broker_id=0, broker_epoch=broker.registration.epoch)
                block = await broker.driver.ask(allocate)
                assert block.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            node = await store.get("/latest_producer_id_block")
            assert node is not None
            await store.set(
                "/latest_producer_id_block",
                b'{"version":1,"broker":0,"block_start":"1000","block_end":"1999"}',
                version=node.version,
            )
            async with Broker(store, 0).running() as broker:
                allocate = AllocateProducerIds(broker_id=0, broker_epoch=broker.registration.epoch)
                assert (await broker.driver.ask(allocate)).first == 2000

    run(story)


def test_a_store_that_fails_is_an_answer_and_not_the_end() -> None:
    class FailingStore(EmbeddedStore):
        failing = False

        async def multi(self, operations: object) -> None:
            if self.failing:
                raise StoreFailed("disk full")
            await super().multi(operations)  # type: ignore[arg-type]  # passed on as it came

    async def story() -> None:
        store = FailingStore()
        await store.open()
        await prepare(store)
        async with Broker(store, 0).running() as broker:
            store.failing = True
            with pytest.raises(StoreFailed, match="disk full"):
                await broker.driver.ask(topics("t"))
            store.failing = False
            (answer,) = await broker.driver.ask(topics("t"))
            assert answer.error is ErrorCode.NONE
        await store.close()

    run(story)


@pytest.mark.parametrize("missing", [ClusterIdNode.PATH, BrokerNode.ROOT])
def test_a_store_that_lost_its_nodes_is_not_the_end(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controllership of another cluster is not taken, and what the store refuses for want of its roots is tried again."""
    monkeypatch.setattr(driver_module, "_RETRY_S", 0)

    async def story() -> None:
        said: asyncio.Queue[str] = asyncio.Queue()
        monkeypatch.setattr(
            driver_module._log, "error", lambda text, *values: said.put_nowait(text % values)
        )
        async with opened() as store:
            await cluster_id(store, "ours")
            lost = await store.get(missing)
            assert lost is not None
            await store.delete(missing)
            candidate = make_driver(store, 0, PlainRules(), cluster="ours")
            task = asyncio.create_task(candidate.run())
            for _ in range(2):
                assert "tries again in a moment" in await said.get()
            await store.create(missing, lost.data)
            await candidate.ready()
            assert candidate.state.controller_id == 0
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(story)


@pytest.mark.parametrize("operation", ["multi", "get_tree", "children"])
def test_a_store_that_fails_while_the_controller_reads_is_not_the_end(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it becomes the controller, and as brokers come and go."""
    monkeypatch.setattr(driver_module, "_RETRY_S", 0.001)

    async def story() -> None:
        async with opened() as store:
            original = getattr(store, operation)
            failures = 3

            async def fail(*arguments: object, **rest: object) -> object:
                nonlocal failures
                if failures:
                    failures -= 1
                    raise StoreFailed("I/O error")
                return await original(*arguments, **rest)

            broker = Broker(store, 0)
            await broker.registration.register()
            monkeypatch.setattr(store, operation, fail)
            task = asyncio.create_task(broker.driver.run())
            await broker.until(lambda: 0 in broker.state.brokers)
            failures = 3
            node = BrokerNode(
                listener_security_protocol_map={},
                endpoints=("PLAINTEXT://b:1",),
                host="b",
                port=1,
                timestamp="1",
            )
            await store.create(BrokerNode.path(5), node.encode(), ephemeral=True)
            await broker.until(lambda: 5 in broker.state.brokers)
            assert not task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(story)


def test_a_controller_node_that_cannot_be_read_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver_module, "_RETRY_S", 0.001)

    async def story() -> None:
        async with opened() as store:
            failed = asyncio.Event()
            error = driver_module._log.error

            def note(*arguments: object) -> None:
                error(*arguments)
                failed.set()

            monkeypatch.setattr(driver_module._log, "error", note)
            await store.create(ControllerNode.PATH, b"garbage", ephemeral=True)
            broker = Broker(store, 0)
            await broker.registration.register()
            task = asyncio.create_task(broker.driver.run())
            await failed.wait()
            assert "/controller: " in caplog.text
            await store.delete(ControllerNode.PATH)
            await broker.until(lambda: 0 in broker.state.brokers)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(story)


def test_batches_keep_groups_whole_and_in_order() -> None:
    groups: list[tuple[Operation, ...]] = [
        (Create(f"/{n}", b"x" * 100), Set(f"/{n}", b"", 0)) for n in range(10)
    ]
    runs = batches(groups, 1000)
    assert [operation for run in runs for operation in run] == [o for g in groups for o in g]
    assert all(len(run) % 2 == 0 for run in runs)
    assert [len(run) for run in runs] == [6, 6, 6, 2]
    assert len(batches(groups, None)) == 1
    assert batches([], None) == []


def test_no_unclean_election_while_the_session_of_a_removed_leader_lives() -> None:
    """Others removed its registration: it may lead on. Also after the controller has changed."""

    async def story() -> None:
        tree = MemoryTree()
        stores = [MemoryStore(tree) for _ in range(3)]
        for store in stores:
            await store.open()
        await prepare(stores[0])
        heard = asyncio.Event()
        first, leader, second = (
            Broker(store, broker_id, heard=heard) for broker_id, store in enumerate(stores)
        )
        async with first.running():
            await leader.registration.register()
            await second.registration.register()
            await first.until(lambda: len(first.state.brokers) == 3)
            edit = ConfigEdit(key="unclean.leader.election.enable", value="true")
            wish = ConfigWish(kind=ConfigKind.BROKER, name="", edits=(edit,))
            await first.driver.ask(AlterConfigs(wishes=(wish,)))
            alone = NewTopic(name="t", assignments=((0, (1, 0, 2)),))
            await first.driver.ask(CreateTopics(topics=(alone,)))
            for member in (0, 2):  # the leader is alone in sync
                await first.driver.ask(shrunk(first, leader, without=member))
            assert first.state.topics["t"].partitions[0].isr == (1,)
            tree.write([Delete(BrokerNode.path(1))], 0)
            await first.until(lambda: 1 not in first.state.brokers)
            assert first.state.topics["t"].partitions[0].leader == -1
            wanted = ElectLeaders(election_type=ElectionType.UNCLEAN)
            (answer,) = await first.driver.ask(wanted)
            assert answer.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            assert "session of broker 1" in str(answer.message)
            await first.driver.ask(AlterConfigs(wishes=(wish,)))
            assert first.state.topics["t"].partitions[0].leader == -1, "a config changes nothing"
        tree.end_session(stores[0].session)  # and with it the controller
        async with second.running():
            await second.until(lambda: 1 not in second.state.brokers)
            assert second.state.topics["t"].partitions[0].leader == -1
            tree.end_session(stores[1].session)
            await second.until(lambda: second.state.topics["t"].partitions[0].leader == 2)

    run(story)


def shrunk(controller: Broker, leader: Broker, *, without: int) -> AlterPartition:
    """The leader's proposal to go on without one of the replicas."""
    topic = controller.state.topics["t"]
    state = topic.partitions[0]
    proposal = IsrProposal(
        topic_id=topic.topic_id,
        partition=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr=tuple(IsrMember(broker_id=each) for each in state.isr if each != without),
    )
    return AlterPartition(
        broker_id=1, broker_epoch=leader.registration.epoch, proposals=(proposal,)
    )
