"""One run of a case against one broker: requests out, a transcript of comparable answers in.

A case is a function that takes a `Script` and asks. It runs once per broker, with names that are its own, so it may use
what it was answered (a member id, a topic id) in later requests.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.wire.message import Request, Response
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_fetch import OffsetFetchRequest
from tests.differential.plain import Aliases, Pick
from tests.differential.requests import LATEST, list_offsets

R = TypeVar("R", bound=Response)
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer, or the end of a connection, in the order of the case."""

    title: str
    answer: Any


ENDED_EARLY = Step(title="end", answer="(the case could not go on)")


class Closed(Exception):
    """The broker closed the connection instead of answering; it is in the transcript."""


class Script:
    """What a case talks to."""

    def __init__(self, port: int, prefix: str) -> None:
        self.transcript: list[Step] = []
        self._port = port
        self._prefix = prefix
        self._aliases = Aliases(prefix)
        self._connections: dict[str, Connection] = {}
        self._threads = ThreadPoolExecutor(8)

    # ---- asking

    def ask(
        self,
        request: Request[R],
        version: int,
        *,
        on: str = "main",
        pick: Pick | None = None,
        client_id: str = "differential",
    ) -> R:
        """Send a request on a named connection and note the answer. `pick` reduces it to what is compared."""
        try:
            answer = self._connection(on, client_id).send(request, version)
        except Disconnected:
            self._connections.pop(on)
            self._note(request, version, "(closed the connection)")
            raise Closed(f"{type(request).__name__} v{version}") from None
        plain = self._aliases.plain(answer, version)
        self._note(request, version, plain if pick is None else pick(plain))
        return answer

    def ask_to_be_closed(self, request: Request[R], version: int) -> None:
        """Send a request for which the broker should hang up."""
        try:
            self.ask(request, version)
        except Closed:
            pass

    def begin(self, request: Request[R], version: int, *, on: str) -> Future[R]:
        """Send a request that the broker may hold back; its answer is noted by `end`."""
        return self._threads.submit(self._connection(on, "differential").send, request, version)

    def end(self, request: Request[R], version: int, begun: Future[R]) -> R:
        answer = begun.result(PATIENCE_S)
        self._note(request, version, self._aliases.plain(answer, version))
        return answer

    def tell(self, request: Request[R], version: int) -> None:
        """Send a request that is not answered."""
        self._connection("main", "differential").tell(request, version)

    def exchange_frames(self, title: str, payload: bytes, *, compared: int | None = None) -> None:
        """Send bytes as a frame on a connection of their own; note the answer, or its first `compared` bytes."""
        answer: object
        with Connection("127.0.0.1", self._port, timeout_s=PATIENCE_S) as connection:
            connection.send_frame(payload)
            try:
                answer = bytes(connection.receive_frame()[:compared]).hex()
            except Disconnected:
                answer = "(closed the connection)"
        self.transcript.append(Step(title=title, answer=answer))

    def _note(self, request: Request[R], version: int, answer: object) -> None:
        name = type(request).__name__.removesuffix("Request")
        self.transcript.append(Step(title=f"{name} v{version}", answer=answer))

    def _connection(self, name: str, client_id: str) -> Connection:
        if name not in self._connections:
            self._connections[name] = Connection(
                "127.0.0.1", self._port, client_id=client_id, timeout_s=PATIENCE_S
            )
        return self._connections[name]

    # ---- preparing; nothing of this is compared

    def name(self, stem: str) -> str:
        """A topic or group name that only this run uses."""
        return self._prefix + stem

    def topic(
        self, stem: str, *, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> str:
        """Create a topic and wait until every partition has a leader."""
        name = self.name(stem)
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
        )
        created = self._send(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7)
        assert [topic.error_code for topic in created.topics] == [0], created
        self.wait_for(
            MetadataRequest(topics=[MetadataRequestTopic(name=name)]),
            12,
            lambda answer: len(answer.topics[0].partitions) == partitions,
        )
        for partition in range(partitions):  # a partition that is known need not have a leader yet
            self.wait_for(
                list_offsets(name, LATEST, partition=partition),
                7,
                lambda answer: answer.topics[0].partitions[0].error_code == 0,
            )
        return name

    def topic_id(self, topic: str) -> UUID:
        found = self._send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
        return found.topics[0].topic_id

    def group(self, stem: str) -> str:
        """A group name whose coordinator is ready to answer."""
        name = self.name(stem)
        self.wait_for(FindCoordinatorRequest(key=name), 3, lambda answer: answer.error_code == 0)
        self.wait_for(
            OffsetFetchRequest(group_id=name, topics=None), 7, lambda answer: answer.error_code == 0
        )
        return name

    def producer_id(self) -> int:
        """A new producer id; the first may take a broker a moment."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        return self.wait_for(request, 4, lambda answer: answer.error_code == 0).producer_id

    def wait_for(self, request: Request[R], version: int, ready: Callable[[R], bool]) -> R:
        """Repeat a request until its answer is the wanted one."""
        deadline = time.monotonic() + PATIENCE_S
        while not ready(answer := self._send(request, version)):
            assert time.monotonic() < deadline, f"still {answer}"
            time.sleep(0.02)
        return answer

    def _send(self, request: Request[R], version: int) -> R:
        return self._connection("preparing", "differential").send(request, version)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._threads.shutdown()


Case = Callable[[Script], None]


@contextmanager
def script(port: int, prefix: str) -> Iterator[Script]:
    running = Script(port, prefix)
    try:
        yield running
    finally:
        running.close()


def run(case: Case, port: int, prefix: str) -> list[Step]:
    """The transcript of a case against the broker on this port."""
    with script(port, prefix) as running:
        try:
            case(running)
        except Closed:
            running.transcript.append(ENDED_EARLY)
        return running.transcript
