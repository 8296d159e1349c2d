"""How a broker joins: whose id it is, whose registration, and what a lost session does to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from headrace.coordination import membership
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.membership import (
    BrokerRegistration,
    cluster_id,
    prepare,
)
from headrace.coordination.nodes import (
    ROOTS,
    BrokerNode,
    BrokerSessionNode,
    ClusterIdNode,
    ControllerNode,
)
from headrace.coordination.store import (
    Create,
    Delete,
    Node,
    Operation,
    SessionState,
    StoreFailed,
    WriteUncertain,
)
from headrace.testing.memory_store import Leg, MemoryStore, MemoryTree


def broker_node(timestamp: str = "1", *, incarnation: str = "a") -> BrokerNode:
    return BrokerNode(
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
        endpoints=("PLAINTEXT://somewhere:9092",),
        host="somewhere",
        port=9092,
        timestamp=timestamp,
        incarnation=incarnation,
    )


def run(story: Callable[[EmbeddedStore], Awaitable[None]], *, prepared: bool = True) -> None:
    async def main() -> None:
        store = EmbeddedStore()
        await store.open()
        if prepared:
            await prepare(store)
        async with asyncio.timeout(10):
            await story(store)
        await store.close()

    asyncio.run(main())


def test_the_roots_are_there_whatever_was_there_before() -> None:
    async def story(store: EmbeddedStore) -> None:
        await store.create("/brokers/topics", parents=True)  # another broker is half-way
        await prepare(store)
        for path in ROOTS:
            assert await store.get(path) is not None, path
        epoch = await store.get("/controller_epoch")
        assert epoch is not None
        assert epoch.data == b"0"
        await store.set("/controller_epoch", b"5", version=0)
        await prepare(store)
        again = await store.get("/controller_epoch")
        assert again is not None
        assert again.data == b"5"

    run(story, prepared=False)


def test_the_first_broker_names_the_cluster() -> None:
    async def story(store: EmbeddedStore) -> None:
        assert await cluster_id(store, "one") == "one"
        assert await cluster_id(store, "two") == "one"

    run(story)


def test_an_id_belongs_to_one_living_broker(caplog: pytest.LogCaptureFixture) -> None:
    """Another waits for as long as it takes, and says for whom."""

    async def story(store: EmbeddedStore) -> None:
        first = BrokerRegistration(store, 1, broker_node())
        epoch = await first.register()
        second = BrokerRegistration(store, 1, broker_node("2", incarnation="b"))
        registering = asyncio.ensure_future(second.register())
        while not caplog.messages:  # noqa: ASYNC110 (the store has a thread of its own)
            await asyncio.sleep(0.001)
        assert "broker 1 waits" in caplog.text
        assert "somewhere:9092" in caplog.text
        await second.withdraw()
        assert await store.get(BrokerNode.path(1)) is not None, "that of the first is not withdrawn"
        await first.withdraw()
        await settle()
        assert not registering.done(), "the session of the first lives"
        await store.delete(BrokerSessionNode.path(1))
        assert await registering > epoch

    run(story)


def test_a_registration_of_a_dead_process_is_replaced_at_once() -> None:
    """Whether others have removed it already or not: the lock on the data directory proves the death."""

    async def story(store: EmbeddedStore, *, is_removed: bool) -> None:
        first = BrokerRegistration(store, 1, broker_node(incarnation="a"))
        epoch = await first.register()
        if is_removed:
            await store.delete(BrokerNode.path(1))
        await store.create(ControllerNode.PATH, ControllerNode(1, "0").encode(), ephemeral=True)
        second = BrokerRegistration(
            store, 1, broker_node("2", incarnation="b"), dead_incarnations=("z", "a")
        )
        assert await second.register() > epoch
        assert await store.get(ControllerNode.PATH) is None, "its controllership goes with it"
        session = await store.get(BrokerSessionNode.path(1))
        assert session is not None
        assert BrokerSessionNode.decode(1, session.data).incarnation == "b"

    run(lambda store: story(store, is_removed=False))
    run(lambda store: story(store, is_removed=True))


def test_an_uncertain_first_registration_is_tried_again() -> None:
    """Whether or not the write was made: the broker is registered once, and the process does not end."""

    async def story(*, lost: set[int]) -> None:
        tree = MemoryTree()
        writes = 0

        async def travel(leg: Leg) -> None:
            nonlocal writes
            if leg is Leg.BACK_FROM_WRITE:
                writes += 1
                if writes in lost:
                    raise WriteUncertain("the connection broke")

        store = MemoryStore(tree, travel)
        await store.open()
        await prepare(store)
        assert await cluster_id(store, "one") == "one"
        epoch = await BrokerRegistration(store, 1, broker_node()).register()
        node = tree.get(BrokerNode.path(1))
        assert node is not None
        assert node.created_txn == epoch

    for lost in ({1}, {2}, {3}, {1, 2, 3, 4, 5}):
        asyncio.run(story(lost=lost))


def test_a_registration_whose_answer_was_lost_is_recognised() -> None:
    async def story(store: EmbeddedStore) -> None:
        node = broker_node()
        created = await store.create(BrokerNode.path(1), node.encode(), ephemeral=True)
        await store.create(BrokerSessionNode.path(1), BrokerSessionNode("a").encode())
        assert await BrokerRegistration(store, 1, node).register() == created.created_txn

    run(story)


class Living:
    """A registered broker that renews its registration. `told` has its epochs, and "removed"."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.store = MemoryStore(self.tree)
        self.told: asyncio.Queue[int | str] = asyncio.Queue()
        self.registration = BrokerRegistration(
            self.store,
            1,
            broker_node(),
            on_epoch=self.told.put_nowait,
            on_removed=lambda: self.told.put_nowait("removed"),
            on_confirmed=self._confirm,
        )
        self.confirmed: list[int] = []  # epochs

    def _confirm(self) -> None:
        self.confirmed.append(self.registration.epoch)

    def lose_session(self) -> None:
        self.tree.end_session(self.store.session)
        self.store.report(SessionState.LOST)
        self.store.renew()

    def be_removed(self) -> None:
        self.tree.write([Delete(BrokerNode.path(1))], 0)

    @property
    def node(self) -> Node | None:
        return self.tree.get(BrokerNode.path(1))


def live(
    story: Callable[[Living], Awaitable[None]],
    before: Callable[[Living], None] = lambda _: None,
) -> None:
    """`before` happens after the registration, before it is looked after."""

    async def main() -> None:
        broker = Living()
        await broker.store.open()
        await prepare(broker.store)
        first = await broker.registration.register()
        assert broker.told.get_nowait() == first
        before(broker)
        running = asyncio.ensure_future(broker.registration.run())
        async with asyncio.timeout(10):
            await settle()
            await story(broker)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


async def settle() -> None:
    """Whatever has been set going comes to rest: nothing here takes time."""
    for _ in range(20):
        await asyncio.sleep(0)


async def told_after(broker: Living, event: Callable[[Living], None]) -> list[int | str]:
    event(broker)
    await settle()
    return [broker.told.get_nowait() for _ in range(broker.told.qsize())]


def assert_registered(broker: Living, epoch: int | str, previous: int) -> None:
    node = broker.node
    assert node is not None
    assert node.created_txn == epoch == broker.registration.epoch
    assert BrokerNode.decode(1, node.data).previous_broker_epoch == previous


def test_a_lost_session_is_followed_by_a_new_registration() -> None:
    async def story(broker: Living) -> None:
        first = broker.registration.epoch
        (second,) = await told_after(broker, Living.lose_session)
        assert_registered(broker, second, previous=first)

    live(story)


def test_a_registration_that_somebody_removed_is_followed_by_another() -> None:
    async def story(broker: Living) -> None:
        for _ in range(3):
            before = broker.registration.epoch
            removed, after = await told_after(broker, Living.be_removed)
            assert removed == "removed", "before there is another one"
            assert_registered(broker, after, previous=before)

    live(story)


def test_a_session_that_is_lost_while_registering_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The write may have been done in the next session already: then the registration is in its place, and is watched."""

    async def story(broker: Living) -> None:
        multi = broker.store.multi

        async def lose_session_first(operations: Sequence[Operation]) -> None:
            monkeypatch.undo()
            broker.lose_session()
            await multi(operations)

        monkeypatch.setattr(broker.store, "multi", lose_session_first)
        first = broker.registration.epoch
        removed, *_, second = await told_after(broker, Living.be_removed)
        assert removed == "removed"
        assert_registered(broker, second, previous=first)
        removed, third = await told_after(broker, Living.be_removed)
        assert removed == "removed", "or the broker would go on leading"
        assert isinstance(second, int)
        assert_registered(broker, third, previous=second)

    live(story)


def test_a_removal_before_anyone_watches_is_noticed() -> None:
    async def story(broker: Living) -> None:
        assert broker.told.get_nowait() == "removed"
        assert broker.told.get_nowait() == broker.registration.epoch
        assert broker.node is not None

    live(story, before=Living.be_removed)


def test_another_broker_in_its_place_is_waited_for() -> None:
    async def story(broker: Living) -> None:
        other = broker_node("2", incarnation="b")
        broker.tree.write(
            [
                Delete(BrokerNode.path(1)),
                Create(BrokerNode.path(1), other.encode()),
                Delete(BrokerSessionNode.path(1)),
                Create(BrokerSessionNode.path(1), BrokerSessionNode("b").encode()),
            ],
            0,
        )
        await settle()
        assert broker.told.get_nowait() == "removed"
        assert broker.told.empty()
        broker.tree.write([Delete(BrokerNode.path(1)), Delete(BrokerSessionNode.path(1))], 0)
        await settle()
        epoch = broker.told.get_nowait()
        assert epoch == broker.registration.epoch

    live(story)


def test_a_registration_in_its_place_is_confirmed_after_each_doubt() -> None:
    async def story(broker: Living) -> None:
        told = await told_after(broker, lambda it: it.store.report(SessionState.OVERDUE))
        assert told == [], "nothing is known while the session is in doubt"
        first = broker.registration.epoch
        assert broker.confirmed == [first], "once at the start"
        await told_after(broker, lambda it: it.store.report(SessionState.CONNECTED))
        assert broker.confirmed == [first, first]
        broker.store.report(SessionState.OVERDUE)
        broker.be_removed()
        told = await told_after(broker, lambda it: it.store.report(SessionState.CONNECTED))
        assert told[0] == "removed"
        assert broker.confirmed.count(first) == 2, "what was removed is not confirmed"

    live(story)


def test_whoever_is_leaving_is_not_registered_again() -> None:
    async def withdrawn(broker: Living) -> None:
        await broker.registration.withdraw()
        assert await told_after(broker, Living.lose_session) == []
        assert broker.node is None

    async def removed_while_it_stops(broker: Living) -> None:
        broker.registration.leave()
        assert await told_after(broker, Living.be_removed) == []
        assert broker.node is None

    live(withdrawn)
    live(removed_while_it_stops)


def test_nobody_waits_for_a_store_out_of_reach_in_order_to_leave_it() -> None:
    tree = MemoryTree()

    async def story() -> None:
        out_of_reach = False

        async def travel(_: object) -> None:
            if out_of_reach:
                await asyncio.Event().wait()  # until the connection is back, which it never is

        store = MemoryStore(tree, travel)
        await store.open()
        await prepare(store)
        registration = BrokerRegistration(store, 1, broker_node())
        await registration.register()
        out_of_reach = True
        store.report(SessionState.SUSPENDED)
        async with asyncio.timeout(1):
            await registration.withdraw()

    asyncio.run(story())
    assert tree.get(BrokerNode.path(1)) is not None, "it goes with the session"


def test_a_broker_registers_when_the_store_works_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(membership, "_FAILED_RETRY_S", 0)

    async def story(store: EmbeddedStore) -> None:
        multi, failures = store.multi, 2

        async def fail(operations: Sequence[Operation]) -> None:
            nonlocal failures
            if failures:
                failures -= 1
                raise StoreFailed("no space is left")
            await multi(operations)

        monkeypatch.setattr(store, "multi", fail)
        assert await BrokerRegistration(store, 1, broker_node()).register() > 0

    run(story)
    assert caplog.text.count("broker 1 cannot register, tries again: no space is left") == 2


@pytest.mark.parametrize("found", [None, "another"])
def test_a_store_that_lost_the_cluster_is_waited_for(
    found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that registered in another cluster would put all its logs aside."""
    monkeypatch.setattr(membership, "_FAILED_RETRY_S", 0)

    async def story(store: EmbeddedStore) -> None:
        said: asyncio.Queue[str] = asyncio.Queue()
        monkeypatch.setattr(
            membership._logger, "error", lambda text, *values: said.put_nowait(text % values)
        )
        if found is not None:
            await cluster_id(store, found)
        registering = asyncio.create_task(
            BrokerRegistration(store, 1, broker_node(), cluster="ours").register()
        )
        for _ in range(2):
            assert "this broker belongs to the cluster ours" in await said.get()
        assert await store.get(BrokerNode.path(1)) is None
        if found is not None:
            await store.delete(ClusterIdNode.PATH)
        await cluster_id(store, "ours")
        assert await registering > 0

    run(story)
