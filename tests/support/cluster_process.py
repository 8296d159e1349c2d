"""A cluster of real processes: a ZooKeeper or an ensemble of them, and brokers that find each other through it.

Owns every process and its faults: stop, kill, pause, resume, start again, an emptied disk. What the cluster believes (leaders,
ISR, controller) is asked through a client, as anyone would. Everything that was started has ended when `close` returns.
"""

import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.coordination import zookeeper_server
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.support.broker import FAST_TEST_PROPERTIES, write_properties
from tests.support.server_process import ServerFailed, ServerProcess, free_port, serves_kafka

SESSION_TIMEOUT_MS = 2_500
_TICKS_A_SESSION = 18  # at least: a session ends up to one tick late
READY_S = 40
STOP_S = 30


class PartitionView(NamedTuple):
    """What clients are told of a partition."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ZooKeeperProcess:
    """One server; `kill`, `pause` and `start` again keep the data and the port."""

    def __init__(self, directory: Path, *, my_id: int = 1) -> None:
        (directory / "data").mkdir(parents=True)
        self.port, self.peer_port, self.election_port = free_port(), free_port(), free_port()
        self.my_id = my_id
        self._directory = directory
        self._process = ServerProcess(directory / "zookeeper.log")

    @property
    def data_dir(self) -> Path:
        """Snapshots and transaction logs."""
        return self._directory / "data"

    def configure(self, ensemble: Iterable["ZooKeeperProcess"], tick_time_ms: int) -> None:
        """Write down who else there is."""
        data = self.data_dir
        text = zookeeper_server.default_properties(
            data, port=self.port, address="127.0.0.1", tick_time_ms=tick_time_ms
        )
        peers = list(ensemble)
        if len(peers) > 1:
            (data / "myid").write_text(f"{self.my_id}\n")
            text += "initLimit=80\nsyncLimit=40\n"
            for peer in peers:
                text += (
                    f"server.{peer.my_id}=127.0.0.1:{peer.peer_port}:{peer.election_port}"
                    f";127.0.0.1:{peer.port}\n"
                )
            text = text.replace(f"clientPort={self.port}\n", "")
            text = text.replace("clientPortAddress=127.0.0.1\n", "")
        (self._directory / "zookeeper.properties").write_text(text)

    def launch(self) -> None:
        command = zookeeper_server.command(
            self._directory / "zookeeper.properties", heap="128m", logging=False
        )
        self._process.launch(command, os.environ)

    def wait_until_ready(self) -> None:
        self._process.wait_until_ready(self.port, READY_S, serves_zookeeper)

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def kill(self) -> None:
        self._process.kill()

    def pause(self) -> None:
        self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    def log_tail(self) -> str:
        return self._process.log_tail()


class ClusterBroker:
    """One broker of the cluster."""

    def __init__(self, directory: Path, broker_id: int, properties: Mapping[str, str]) -> None:
        directory.mkdir(parents=True)
        self.broker_id = broker_id
        self.port = free_port()
        self.data_dir = directory / "data"
        self._properties_path = directory / "server.properties"
        self._process = ServerProcess(directory / "broker.log")
        self._is_paused = False
        self._properties = {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data_dir),
            **properties,
        }
        write_properties(self._properties_path, self._properties)

    def set(self, **properties: str) -> None:
        """Other properties from the next start on; names have underscores for dots."""
        self._properties |= {name.replace("_", "."): value for name, value in properties.items()}
        write_properties(self._properties_path, self._properties)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_running()

    @property
    def is_awake(self) -> bool:
        """Whether it runs and is not paused."""
        return self.is_running and not self._is_paused

    def launch(self) -> None:
        self._is_paused = False
        self._process.launch(
            [sys.executable, "-m", "headrace.cli.main", "server-start", str(self._properties_path)],
            os.environ,
        )

    def wait_until_ready(self) -> None:
        self._process.wait_until_ready(self.port, READY_S, serves_kafka)

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def stop(self) -> None:
        """Ask it to end; it hands its leaderships over first."""
        self._process.stop(STOP_S)

    def kill(self) -> None:
        self._process.kill()

    def pause(self) -> None:
        self._process.pause()
        self._is_paused = True

    def resume(self) -> None:
        self._process.resume()
        self._is_paused = False

    def log_of(self, name: str) -> Path:
        """The directory of a partition's log, on whichever disk it is."""
        for path in map(Path, self._properties["log.dirs"].split(",")):
            if (path / name).exists():
                return path / name
        raise FileNotFoundError(f"broker {self.broker_id} has no {name}")

    def add_log_dir(self, path: Path) -> None:
        """One more disk, from the next start on."""
        self._properties["log.dirs"] += f",{path}"
        write_properties(self._properties_path, self._properties)

    def wipe(self) -> None:
        """Empty its disk; it must not be running."""
        assert not self.is_running, "a running broker's disk is not wiped"
        shutil.rmtree(self.data_dir)

    def log_tail(self, characters: int = 4000) -> str:
        return self._process.log_tail(characters)


class ClusterProcess:
    """The whole cluster; brokers are numbered from 1. Start on entry, end on exit."""

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 3,
        zookeepers: int = 1,
        chroot: str = "",
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.zookeepers = [
            ZooKeeperProcess(directory / f"zookeeper-{number}", my_id=number)
            for number in range(1, zookeepers + 1)
        ]
        for zookeeper in self.zookeepers:
            tick_ms = min(zookeeper_server.TICK_MS, session_timeout_ms // _TICKS_A_SESSION)
            zookeeper.configure(self.zookeepers, tick_ms)
        addresses = ",".join(f"127.0.0.1:{zookeeper.port}" for zookeeper in self.zookeepers)
        common = {
            **FAST_TEST_PROPERTIES,
            "zookeeper.connect": addresses + chroot,
            "zookeeper.session.timeout.ms": str(session_timeout_ms),
            "default.replication.factor": str(min(3, brokers)),
            "offsets.topic.replication.factor": str(min(3, brokers)),
            "min.insync.replicas": str(min(2, brokers)),
            "auto.create.topics.enable": "false",
            **(properties or {}),
        }
        self.brokers = {
            number: ClusterBroker(directory / f"broker-{number}", number, common)
            for number in range(1, brokers + 1)
        }

    # ---- the processes

    def start(self) -> None:
        """All of ZooKeeper, then all brokers at once."""
        for zookeeper in self.zookeepers:
            zookeeper.launch()
        for zookeeper in self.zookeepers:
            zookeeper.wait_until_ready()
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_until_ready()
        self.wait_for_all_brokers()

    def stop_brokers(self) -> None:
        """End the brokers in an orderly way, one after the other."""
        for broker in self.brokers.values():
            if broker.is_running:
                broker.stop()

    def close(self) -> None:
        """End everything that still runs, without ceremony."""
        for broker in self.brokers.values():
            broker.kill()
        for zookeeper in self.zookeepers:
            zookeeper.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if error is not None:
            error.add_note(self.story())

    def story(self) -> str:
        """How the brokers' logs end."""
        return "\n".join(
            f"--- broker {number}\n{broker.log_tail()}" for number, broker in self.brokers.items()
        )

    # ---- what a client sees

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers.values())

    def admin(self) -> AdminClient:
        """A new one: an old one may hold on to a controller that is paused."""
        awake = [f"127.0.0.1:{broker.port}" for broker in self.brokers.values() if broker.is_awake]
        return AdminClient({"bootstrap.servers": ",".join(awake), "log_level": 0})

    def metadata(self, topic: str | None = None) -> MetadataResponse:
        """Of one topic or of all, from the first broker that answers."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            for answer in self._metadata_of_each(topic):
                if answer is not None:
                    return answer
            time.sleep(0.05)
        raise ServerFailed(f"no broker answers within {READY_S} s")

    def _metadata_of_each(self, topic: str | None) -> Iterator[MetadataResponse | None]:
        """What each broker that is awake believes; None where one does not answer."""
        request = MetadataRequest(
            topics=None if topic is None else [MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
        )
        for broker in self.brokers.values():
            if broker.is_awake:
                try:
                    with Connection("127.0.0.1", broker.port, timeout_s=5) as connection:
                        yield connection.send(request)
                except Disconnected:
                    yield None

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = 3,
        replicas: list[list[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until every partition has its leader and all replicas in sync."""
        wish = (
            NewTopic(name, len(replicas), replica_assignment=replicas, config=dict(config or {}))
            if replicas is not None
            else NewTopic(name, partitions, replication_factor, config=dict(config or {}))
        )
        admin = self.admin()
        admin.create_topics([wish], request_timeout=20)[name].result(30)
        self.wait_for_full_isr(name)

    def delete_topic(self, name: str) -> None:
        admin = self.admin()
        admin.delete_topics([name], request_timeout=20)[name].result(30)
        self.wait_for(lambda: not self.partitions(name), f"{name} is gone")

    def partitions(self, topic: str) -> dict[int, PartitionView]:
        """Each partition as clients are told of it; nothing while the topic is not known."""
        return {index: view for (_, index), view in _views(self.metadata(topic)).items()}

    def partitions_seen_by(self, broker_id: int, topic: str) -> dict[int, PartitionView]:
        """Each partition as this broker tells clients of it."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        with Connection("127.0.0.1", self.brokers[broker_id].port, timeout_s=5) as connection:
            return {index: view for (_, index), view in _views(connection.send(request)).items()}

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition; waits for there to be one."""
        leader = -1

        def known() -> bool:
            nonlocal leader
            view = self.partitions(topic).get(partition)
            leader = -1 if view is None else view.leader
            return leader in self.brokers

        self.wait_for(known, f"{topic}-{partition} has a leader")
        return leader

    def controller(self) -> int:
        """The broker in the controllership; waits for there to be one."""
        controller = -1

        def known() -> bool:
            nonlocal controller
            controller = self.metadata().controller_id
            return controller in self.brokers

        self.wait_for(known, "there is a controller")
        return controller

    def wait_for_another_controller(self, former: int, timeout_s: float = 40) -> None:
        """Wait until all brokers name the same: a client that hears of the former from one of them tries that for long."""

        def agreed() -> bool:
            answers = self._metadata_of_each(None)
            named = {-1 if answer is None else answer.controller_id for answer in answers}
            return len(named) == 1 and not named & {-1, former}

        self.wait_for(agreed, f"another controller than {former}", timeout_s)

    def wait_for_all_brokers(self) -> None:
        """Wait until every broker is registered."""
        self.wait_for(
            lambda: len(self.metadata().brokers) == len(self.brokers), "all brokers are registered"
        )

    def has_full_isr(self, topic: str | None) -> bool:
        """Whether all brokers agree that every partition (of all topics) has a leader and all its replicas in sync."""
        answers = list(self._metadata_of_each(topic))
        pictures = [{} if answer is None else _views(answer) for answer in answers]
        return all(
            picture
            and picture == pictures[0]
            and all(
                view.leader >= 0 and set(view.isr) == set(view.replicas)
                for view in picture.values()
            )
            for picture in pictures
        )

    def wait_for_full_isr(self, topic: str | None, timeout_s: float = 40) -> None:
        self.wait_for(
            lambda: self.has_full_isr(topic), f"all replicas of {topic or 'all'} in sync", timeout_s
        )

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = 40) -> None:
        """Ask again and again; fails with the story of the brokers."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise ServerFailed(f"not within {timeout_s:g} s: {what}")
            time.sleep(0.05)


def _views(answer: MetadataResponse) -> dict[tuple[str | None, int], PartitionView]:
    return {
        (topic.name, partition.partition_index): PartitionView(
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(sorted(partition.isr_nodes)),
        )
        for topic in answer.topics
        for partition in sorted(topic.partitions, key=lambda each: each.partition_index)
    }


def serves_zookeeper(port: int) -> bool:
    """Does a server answer `srvr`? One of an ensemble without a majority says that it does not serve."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"srvr")
            answer = connection.makefile("rb").read()
    except OSError:
        return False
    return b"Mode: " in answer
