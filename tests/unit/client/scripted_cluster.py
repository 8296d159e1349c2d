"""A cluster that answers from a script, behind the seam where `Admin` opens connections."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, cast

from headrace.client.admin.admin import Admin
from headrace.client.brokers import Address
from headrace.client.exchange import Disconnected, R, VersionRanges
from headrace.client.retries import BlockingTime
from headrace.wire.api_keys import ApiKey, request_class
from headrace.wire.message import Request
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

Answer = Callable[[Any], Any]


class SkippedTime(BlockingTime):
    """Time that passes only while somebody sleeps. `on_sleep` lets something happen meanwhile."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self.on_sleep: Callable[[], None] = lambda: None

    def now_s(self) -> float:
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        self.passed_s += seconds
        self.on_sleep()


class ScriptedCluster:
    """Brokers `b1:9092`, `b2:9092`, …; every request is noted, with the broker that got it and the version."""

    def __init__(self, broker_ids: tuple[int, ...] = (1, 2)) -> None:
        self.broker_ids = broker_ids
        self.controller_id = broker_ids[0]
        self.leaders: dict[str, list[int]] = {}
        self.down: set[int] = set()
        self.unreachable: set[int] = set()  # down, but the others do not know it
        self.asked: list[tuple[int, Any, int]] = []
        self.time = SkippedTime()
        self.offered = {key.value: request_class(key).VERSIONS for key in ApiKey}
        self._answers: dict[type, list[Answer]] = defaultdict(list)

    def admin(self, *, timeout_s: float = 5.0) -> Admin:
        addresses = ",".join(f"b{each}:9092" for each in self.broker_ids)
        return Admin(addresses, connect=self.connect, timeout_s=timeout_s, blocking_time=self.time)

    def answers(self, request: type, *answers: Answer) -> None:
        """What requests of a class get, one after the other; the last one stays."""
        self._answers[request] += answers

    def connect(self, address: Address) -> "ScriptedLink":
        broker_id = int(address.host[1:])
        if broker_id in self.down | self.unreachable:
            raise Disconnected(f"{address}: down") from ConnectionRefusedError(111, "Refused")
        return ScriptedLink(self, broker_id)

    def answer(self, broker_id: int, request: Any, version: int) -> Any:
        self.asked.append((broker_id, request, version))
        if isinstance(request, MetadataRequest):
            return self._metadata(request)
        waiting = self._answers[type(request)]
        assert waiting, f"nobody expected {request}"
        return (waiting.pop(0) if len(waiting) > 1 else waiting[0])(request)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        wanted = (
            self.leaders if request.topics is None else [each.name or "" for each in request.topics]
        )
        return MetadataResponse(
            cluster_id="scripted",
            controller_id=self.controller_id,
            brokers=[
                MetadataResponseBroker(node_id=each, host=f"b{each}", port=9092)
                for each in self.broker_ids
                if each not in self.down
            ],
            topics=[
                MetadataResponseTopic(
                    name=name,
                    error_code=0 if name in self.leaders else 3,
                    partitions=[
                        MetadataResponsePartition(partition_index=number, leader_id=leader)
                        for number, leader in enumerate(self.leaders.get(name, []))
                    ],
                )
                for name in wanted
            ],
        )

    def brokers_asked(self, request: type) -> list[int]:
        return [broker for broker, asked, _ in self.asked if isinstance(asked, request)]


class ScriptedLink:
    """A connection to one broker of the script."""

    def __init__(self, cluster: ScriptedCluster, broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id

    def send(self, request: Request[R], version: int | None = None) -> R:
        assert version is not None
        if self._broker_id in self._cluster.down | self._cluster.unreachable:
            raise Disconnected("it went down")
        return cast(R, self._cluster.answer(self._broker_id, request, version))

    def negotiate(self) -> VersionRanges:
        return self._cluster.offered

    def close(self) -> None:
        """Nothing is open."""
