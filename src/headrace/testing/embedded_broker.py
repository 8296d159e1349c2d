"""A real broker inside the test process: the same code, in a thread of its own, on a free port.

    with EmbeddedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

It keeps its data in a temporary directory, which goes when it stops. A rim module: it owns a thread and an event loop.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from headrace.broker.environment import process_environment
from headrace.broker.main import Broker, new_loop
from headrace.controller.cluster_state import ClusterState
from headrace.controller.configs import AlterConfigs, ConfigWish
from headrace.controller.deletions import DeleteTopics
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.coordination.store import Store
from headrace.errors import HeadraceError
from headrace.settings.broker_settings import BrokerSettings

T = TypeVar("T")

_TEST_SETTINGS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",  # no test waits for members that will not come
    "group.min.session.timeout.ms": "1",
    "offsets.topic.num.partitions": "5",
    "headrace.busy.poll.us": "0",  # the test's own thread wants to run
}


class EmbeddedBroker:
    """One broker for tests."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        make_store: Callable[[], Store] | None = None,
    ) -> None:
        """`settings` in Kafka's names, on top of a few that make tests quick; `make_store` for another
        coordination store than the one that the settings name."""
        self._overrides = dict(settings or {})
        self._make_store = make_store
        self._directory: str | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self._broker: Broker | None = None
        self._failure: BaseException | None = None
        self._port = 0

    @property
    def bootstrap_servers(self) -> str:
        """What a client's setting of that name wants."""
        return f"127.0.0.1:{self._port}"

    @property
    def data_directory(self) -> str:
        """Where the logs are."""
        assert self._directory is not None, "not started"
        return self._directory

    @property
    def is_running(self) -> bool:
        """Whether it was started and neither stopped nor killed since."""
        return self._thread is not None

    # ---- starting and stopping

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self.remove_data()

    def start(self) -> None:
        """Start, or start again on the same data and port. Returns when clients are served."""
        assert self._thread is None, "started twice"
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="headrace-")
        started = threading.Event()
        self._failure = None
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="headrace-broker", daemon=True
        )
        self._thread.start()
        started.wait()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self._thread = None
            raise self._failure

    def stop(self) -> None:
        """Stop as after SIGTERM."""
        if self._thread is not None and self._loop is not None and self._broker is not None:
            self._end(self._broker.stop)
            self._raise_failure()

    def kill(self) -> None:
        """End as after SIGKILL: nothing is handed over, withdrawn or closed; what was written stays.

        Only the session with the coordination store ends at once, so that no test waits for its time-out.
        """
        if self._thread is not None:
            self._end(self._end_abruptly)

    def _end(self, how: Callable[[], object]) -> None:
        assert self._thread is not None
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(how)
        except RuntimeError:
            pass  # its loop is closed: it has ended by itself
        self._thread.join()
        self._thread = None

    def _end_abruptly(self) -> None:
        """In one go, on the broker's thread: from here on nobody gets an answer, and no byte gets to a log."""
        parts = self._parts
        for listener in parts.listeners:
            listener.stop_accepting()
            listener.abort_connections()
        for directory in parts.log_dirs.online:
            parts.log_dirs.take_offline(directory.path, "the broker is killed")
        assert self._serving is not None
        self._serving.cancel()

    def remove_data(self) -> None:
        """Forget everything; a next start begins anew."""
        self.wipe()
        self._directory = None
        self._port = 0

    def wipe(self) -> None:
        """Lose the disk: a next start, at the same address, finds nothing."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    # ---- shortcuts for tests

    def create_topic(
        self, name: str, partitions: int = 1, replication_factor: int = -1, **config: str
    ) -> None:
        """Create a topic; config names with underscores for dots, as in `cleanup_policy="compact"`."""
        topic = NewTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs={key.replace("_", "."): value for key, value in config.items()},
        )
        answer = self.call(self._parts.controller.ask(CreateTopics(topics=(topic,))))[0]
        if answer.error:
            raise HeadraceError(f"{name}: {answer.error.name}: {answer.message}")

    def reset(self) -> None:
        """Bring it to what a new broker is: running, without topics, groups and settings that were altered."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = None
            self.start()
        names = self.look(lambda cluster: tuple(cluster.topics))
        if names:
            self.call(self._parts.controller.ask(DeleteTopics(names=names)))
        # Those of topics went with the topics.
        altered = self.look(lambda cluster: tuple(cluster.configs))
        if altered:
            wishes = tuple(
                ConfigWish(kind=kind, name=name, edits=(), replace_all=True)
                for kind, name in altered
            )
            self.call(self._parts.controller.ask(AlterConfigs(wishes=wishes)))

    def look(self, question: Callable[[ClusterState], T]) -> T:
        """What this broker believes about the cluster; asked on its own thread."""

        async def answer() -> T:
            return question(self._parts.cluster.state)

        return self.call(answer())

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the broker's event loop."""
        assert self._loop is not None, "not started"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # ---- the broker's thread

    def _run(self, started: threading.Event) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop()) as runner:
                runner.run(self._serve(started))
        except asyncio.CancelledError:
            pass  # killed
        except BaseException as failure:  # noqa: BLE001 (handed to the thread that started us)
            self._failure = failure
        finally:
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._serving = asyncio.current_task()
        properties = _TEST_SETTINGS | self._overrides
        if self._port:
            properties["listeners"] = f"PLAINTEXT://127.0.0.1:{self._port}"
        settings = BrokerSettings.from_properties(properties, default_log_dir=self.data_directory)
        environment = process_environment()
        if self._make_store is not None:
            make_store = self._make_store
            environment = replace(environment, make_store=lambda settings, cluster: make_store())
        self._broker = Broker(settings, environment)

        def on_ready() -> None:
            assert self._broker is not None
            self._port = next(iter(self._broker.ports.values()))
            started.set()

        try:
            await self._broker.run(on_ready)
        finally:
            await self._abort_late_connections()

    async def _abort_late_connections(self) -> None:
        """End those that came while the door was being shut: where warnings are errors, uvloop waits for them for ever."""
        if self._parts is not None:
            await asyncio.sleep(0)
            for listener in self._parts.listeners:
                listener.abort_connections()

    @property
    def _parts(self) -> Any:
        assert self._broker is not None, "not started"
        return self._broker.parts
