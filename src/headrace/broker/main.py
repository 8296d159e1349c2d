"""Starts and stops a broker, in an order that can be read here. A rim module.

Up: store, log directories (recovery), wire the parts, bind the listeners, register, serve brokers, find or be the
controller, take on roles, serve clients. Down: stop accepting, leave the groups, stop background work, close the logs, withdraw, close the store.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from headrace.broker.cluster.store_identity import cluster_of_directories, refuse_wrong_store
from headrace.broker.environment import Environment, process_environment
from headrace.broker.lifecycle import BrokerState
from headrace.broker.replicas.log_opening import RecoveryProgress
from headrace.broker.upkeep.housekeeping import note_replicas
from headrace.broker.wiring import BrokerComponents, BrokerInputs
from headrace.controller.brokers import ControlledShutdown
from headrace.controller.deletions import RemoveReplicas
from headrace.controller.driver import NotController
from headrace.controller.features import SUPPORTED_LEVELS
from headrace.coordination.membership import BrokerRegistration, cluster_id, prepare
from headrace.coordination.nodes import (
    DEFAULT_BROKER,
    UNREADABLE_TOPIC_CONFIG,
    BrokerNode,
    ConfigNode,
    MalformedNode,
)
from headrace.coordination.store import Node, SessionState, Store, StoreFailed
from headrace.coordinator.group.events import DeletedTopic
from headrace.errors import DiskFailed
from headrace.ids import text_of_id
from headrace.log.clean_run import UNKNOWN_RUN, CleanRun
from headrace.log.files.incarnations import add_incarnation, read_incarnations
from headrace.log.files.meta_properties import claim_directory
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.dynamic import apply_dynamic, readable_topic_config

_logger = logging.getLogger(__name__)

_COLLECTED_AFTER_ALLOCATIONS: Final = 20_000  # Python's 700 is for programs that make cycles

_SESSION_TEXTS: Final = {
    SessionState.SUSPENDED: "the coordination store does not answer. Leaders here take writes until the session may have ended;"
    " the broker goes on trying to reach the store",
    SessionState.OVERDUE: "the coordination store has not answered for so long that the session may have ended: leaders here take no"
    " writes until it answers. Reads are served. See docs/operating/README.md, ZooKeeper is lost",
    SessionState.LOST: "the session with the coordination store has ended: leaders here take no writes until the broker has"
    " registered again, which it does by itself",
}

_HAND_OVER_S = 10.0
_HAND_OVER_ATTEMPTS = 4
_HAND_OVER_PAUSE_S = 0.25


class Broker:
    """One broker of a cluster; alone, it is the whole cluster."""

    def __init__(self, settings: BrokerSettings, environment: Environment | None = None) -> None:
        """Without an environment, in that of the process."""
        self._settings = settings
        self._environment = environment or process_environment()
        self._clock = self._environment.clock
        self._disk = self._environment.disk
        self._stop = asyncio.Event()
        self._registration: BrokerRegistration | None = None
        self._background: list[asyncio.Task[None]] = []
        self._deletions: set[asyncio.Task[None]] = set()
        self.ports: dict[str, int] = {}  # by listener name
        self.parts: BrokerComponents | None = None

    def stop(self) -> None:
        """Ask the broker to end; `run` returns when it has."""
        self._stop.set()

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Run until `stop`; `on_ready` is called once clients are served. Raises what keeps the broker from that."""
        known_cluster = cluster_of_directories(self._disk, self._settings)
        try:
            async with self._open_store(known_cluster) as store:
                await refuse_wrong_store(store, self._disk, self._settings, known_cluster)
                await prepare(store)
                identity = await cluster_id(store, text_of_id(self._environment.new_uuid()))
                log_dirs = await self._open_logs(store)
                previous_run = _of_cluster(log_dirs.previous_run, identity)
                try:
                    async with asyncio.TaskGroup() as tasks:
                        if await self._start(store, log_dirs, identity, previous_run, tasks):
                            on_ready()
                            await self._stop.wait()
                        await self._shut_down()
                finally:
                    log_dirs.close(self._clock(), run=self._clean_run(previous_run, identity))
        except BaseExceptionGroup as failures:
            raise _first_failure(failures) from None

    async def _open_logs(self, store: Store) -> LogDirs:
        """Open every log under its topic's own configuration: recovery has to know which are compacted."""
        environment = self._environment
        nodes = await store.get_tree(ConfigNode.ROOT)
        configs = _configs_in(nodes)
        # What is left out here is named once the controller's state is applied.
        settings, _ = apply_dynamic(
            self._settings,
            default=configs.get(("brokers", DEFAULT_BROKER), {}),
            broker=configs.get(("brokers", str(self._settings.node_id)), {}),
        )

        def config_for(topic: str) -> LogConfig:
            config = readable_topic_config(settings, configs.get(("topics", topic), {}))
            return config.to_log_config(
                producer_id_expiration_ms=settings.producer_id_expiration_ms
            )

        log_dirs = LogDirs(
            self._disk,
            list(settings.log_dirs),
            config_for=config_for,
            new_id=environment.new_uuid,
            open_all=partial(environment.workers.map, settings.num_recovery_threads_per_data_dir),
        )
        # Not on the event loop, because recovery may take long and the session must be kept meanwhile.
        progress = RecoveryProgress(environment.monotonic)
        await environment.workers.run(partial(log_dirs.open, self._clock(), progress))
        return log_dirs

    @asynccontextmanager
    async def _open_store(self, known_cluster: str | None) -> AsyncIterator[Store]:
        store = self._environment.make_store(self._settings, known_cluster)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def _start(
        self,
        store: Store,
        log_dirs: LogDirs,
        identity: str,
        previous_run: CleanRun,
        tasks: asyncio.TaskGroup,
    ) -> bool:
        """Whether clients are served now; not if the broker was told to stop before."""
        settings = self._settings
        directory_ids = tuple(
            claim_directory(
                self._disk,
                directory.path,
                cluster_id=identity,
                node_id=settings.node_id,
                new_directory_id=self._environment.new_uuid(),
            ).directory_id
            for directory in log_dirs.online
        )

        def on_topics_deleted(topics: list[tuple[str, UUID]], paths: list[str]) -> None:
            task = tasks.create_task(self._after_deletion(topics, paths))
            self._deletions.add(task)
            task.add_done_callback(self._deletions.discard)

        parts = self.parts = BrokerComponents(
            BrokerInputs(
                settings=settings,
                environment=self._environment,
                store=store,
                log_dirs=log_dirs,
                cluster_id=identity,
                tasks=tasks,
                broker_epoch=lambda: -1 if self._registration is None else self._registration.epoch,
                on_topics_deleted=on_topics_deleted,
            )
        )
        await parts.http.start()
        for listener in parts.listeners:
            self.ports[listener.listener_name] = await listener.bind()
        store.on_session(self._on_session)
        self._registration = self._make_registration(store, parts, previous_run, directory_ids)
        if not await self._unless_stopped(self._registration.register(), tasks):
            return False
        for listener in parts.listeners:
            await listener.serve()
        jobs = [
            self._registration.run(),
            parts.driver.run(),
            parts.dead_broker_removal.run(),
            parts.controller.follow(parts.feed.apply),
            parts.isr_updates.run(),
            parts.log_start_sync.run(),
            parts.leader_balance.run(),
            parts.role_application.run(),
            parts.offline_replica_reports.run(),
            parts.epoch_raising.run(),
            parts.replica_moves.run(),
            parts.cleaner.run(),
            *parts.housekeeping.jobs(),
        ]
        self._background = [tasks.create_task(job) for job in jobs]
        on_topics_deleted([], log_dirs.leftovers)
        if not await self._unless_stopped(parts.is_in_cluster_state.wait(), tasks):
            return False
        parts.dispatch.open()
        parts.lifecycle.state = BrokerState.RUNNING
        return True

    async def _unless_stopped(
        self, work: Coroutine[Any, Any, object], tasks: asyncio.TaskGroup
    ) -> bool:
        """Wait for some work, or until the broker is told to stop. Returns whether the work is done."""
        working, stopping = tasks.create_task(work), tasks.create_task(self._stop.wait())
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        return not working.cancel()  # what is done cannot be cancelled

    def _make_registration(
        self,
        store: Store,
        parts: BrokerComponents,
        previous_run: CleanRun,
        directory_ids: tuple[str, ...],
    ) -> BrokerRegistration:
        incarnation, dead = str(self._environment.new_uuid()), []
        for directory in parts.log_dirs.online:
            try:
                dead += read_incarnations(self._disk, directory.path)
                add_incarnation(self._disk, directory.path, incarnation)
            except DiskFailed as error:
                _logger.warning("%s does not know who uses it: %s", directory.path, error)
        node = self._broker_node(previous_run, incarnation)
        return BrokerRegistration(
            store,
            self._settings.node_id,
            msgspec.structs.replace(
                node,
                directories=directory_ids,
                offline_directories=len(self._settings.log_dirs) - len(directory_ids),
            ),
            cluster=parts.cluster.cluster_id,
            dead_incarnations=dead,
            on_epoch=lambda _: parts.replica_hosting.registered(),
            # As good as a lost session: others may have been elected.
            on_removed=partial(parts.replica_hosting.session_changed, SessionState.LOST),
            on_confirmed=partial(parts.replica_hosting.session_changed, SessionState.CONNECTED),
        )

    def _on_session(self, state: SessionState) -> None:
        """A leader whose session may be over must stop in time: another may be elected by then."""
        assert self.parts is not None
        if state is not SessionState.CONNECTED:
            _logger.warning(_SESSION_TEXTS[state])
        self.parts.counts.note_session(state, self._clock())
        if state is not SessionState.CONNECTED:  # then the registration is looked at first
            self.parts.replica_hosting.session_changed(state)

    def _clean_run(self, previous: CleanRun, identity: str) -> CleanRun:
        """What the marker of a clean stop says; without a registration this run changed nothing."""
        us = self._registration
        if us is None or us.epoch == -1:
            return previous._replace(cluster_id=identity)
        return CleanRun(us.epoch, us.clean_since_epoch, identity)

    def _broker_node(self, previous: CleanRun, incarnation: str) -> BrokerNode:
        settings = self._settings
        advertised = settings.advertised_listeners or tuple(
            # A host that other brokers and clients can dial, for a listener on all interfaces.
            listener._replace(
                port=self.ports[listener.name],
                host=listener.host or self._environment.network.host_name(),
            )
            for listener in settings.listeners
        )
        return BrokerNode(
            listener_security_protocol_map={each.name: each.protocol for each in advertised},
            endpoints=tuple(map(str, advertised)),
            host=advertised[0].host,
            port=advertised[0].port,
            timestamp=str(self._clock()),
            rack=settings.broker_rack,
            previous_broker_epoch=previous.broker_epoch,
            clean_since_epoch=previous.since_epoch,
            incarnation=incarnation,
            features={
                name: {"min_version": 0, "max_version": level}
                for name, level in SUPPORTED_LEVELS.items()
                if level > 0
            },
        )

    async def _after_deletion(self, topics: list[tuple[str, UUID]], paths: list[str]) -> None:
        assert self.parts is not None
        parts, run_blocking = self.parts, self._environment.workers.run
        for parent in {path.rpartition("/")[0] for path in paths}:
            try:
                # The controller forgets the topic behind this: its logs must not come back under their names.
                await run_blocking(partial(self._disk.sync_directory, parent))
            except DiskFailed as error:
                _logger.error("what was deleted in %s may come back: %s", parent, error)
        for path in paths:
            try:
                await run_blocking(partial(self._disk.remove_tree, path))
            except DiskFailed as error:
                _logger.error("%s stays until the next start: %s", path, error)
        if not topics:
            return
        await parts.groups.topics_deleted([DeletedTopic(name, id_) for name, id_ in topics])
        ids = tuple(id_ for _, id_ in topics)
        try:
            await parts.controller.ask(
                RemoveReplicas(broker_id=self._settings.node_id, topic_ids=ids)
            )
        except (NotController, StoreFailed) as error:
            _logger.warning("the controller will ask again for %s: %s", topics, error)

    async def _hand_over(self, parts: BrokerComponents) -> None:
        """Give leaderships to others first, so that nobody waits for a broker that is gone."""
        if not self._settings.controlled_shutdown_enable or len(parts.cluster.state.brokers) < 2:
            return
        if not parts.replica_hosting.may_lead:
            _logger.warning("stopping without handing over: the coordination store is out of reach")
            return
        assert self._registration is not None
        epoch = self._registration.epoch
        try:
            async with asyncio.timeout(_HAND_OVER_S):
                await _controlled_shutdown(parts, self._settings.node_id, epoch)
        except TimeoutError:
            _logger.warning(
                "stopping without handing over everything: the controller did not finish within %d s",
                _HAND_OVER_S,
            )
        except (NotController, StoreFailed) as error:
            reason = str(error) or "no controller answers"
            _logger.warning("stopping without handing over everything: %s", reason)

    async def _shut_down(self) -> None:
        assert self.parts is not None
        assert self._registration is not None
        parts = self.parts
        parts.lifecycle.state = BrokerState.SHUTTING_DOWN
        self._registration.leave()
        for listener in parts.listeners:
            listener.stop_accepting()
        await self._hand_over(parts)
        parts.coordinators.stop()
        parts.marker_sending.stop()
        for listener in parts.listeners:
            listener.close_connections()
        parts.fetch_loops.stop()
        # What a deletion leaves undone is done after the next start.
        for task in (*self._background, *self._deletions):
            task.cancel()
        note_replicas(parts.log_dirs, parts.partitions)
        await self._registration.withdraw()
        await parts.http.stop()
        for listener in parts.listeners:
            listener.abort_connections()


async def _controlled_shutdown(parts: BrokerComponents, broker_id: int, broker_epoch: int) -> None:
    """Ask to be relieved, a few times: what nobody else can lead now may find a leader in a moment."""
    wish = ControlledShutdown(broker_id=broker_id, broker_epoch=broker_epoch)
    for _ in range(_HAND_OVER_ATTEMPTS):
        answer = await parts.controller.ask(wish)
        if answer.error or not answer.remaining:
            return
        await asyncio.sleep(_HAND_OVER_PAUSE_S)
    _logger.warning("%d partitions have no other leader", len(answer.remaining))


def _configs_in(nodes: Mapping[str, Node]) -> dict[tuple[str, str], dict[str, str]]:
    """The configs by folder and name; one that cannot be read costs itself only."""
    configs = {}
    for path, node in nodes.items():
        folder, name = ConfigNode.split(path)
        try:
            if node.data:
                configs[folder, name] = ConfigNode.decode(path, node.data).config
        except MalformedNode as error:
            _logger.error("a config cannot be read and is not in force: %s", error)
            if folder == "topics":
                configs[folder, name] = dict(UNREADABLE_TOPIC_CONFIG)
    return configs


def _of_cluster(run: CleanRun, identity: str) -> CleanRun:
    """A clean stop in another cluster says nothing about this one."""
    return run if run.cluster_id in ("", identity) else UNKNOWN_RUN


def _first_failure(failure: BaseException) -> BaseException:
    """What went wrong, without the groups that tasks wrap around it."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def run_forever(settings: BrokerSettings, on_ready: Callable[[Broker], None]) -> None:
    """Run a broker in this process until SIGTERM or SIGINT."""
    import signal

    async def run() -> None:
        broker = Broker(settings)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, broker.stop)

        def ready() -> None:
            on_ready(broker)
            _spare_the_collector()

        await broker.run(on_ready=ready)

    with asyncio.Runner(loop_factory=new_loop()) as runner:
        runner.run(run())


def _spare_the_collector() -> None:
    """What start-up made lives on: looking through it for garbage again and again would only delay requests."""
    import gc

    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER_ALLOCATIONS)


def new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
