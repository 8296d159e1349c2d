"""Admin client: sends each request to the broker that can answer it, and repeats it after errors that pass.

It owns when a request is repeated: after lost connections and errors that pass (`retries`), until `timeout_s` after the call
began; everything else is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from headrace.client.brokers import PATIENCE_S, Address, Brokers, Link, Unreachable, parse_addresses
from headrace.client.cluster_metadata import Cluster, ClusterMetadata
from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected, R, VersionRanges
from headrace.client.retries import REAL_TIME, RETRY_AFTER_S, BlockingTime, passes_for_admin
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused, require

if TYPE_CHECKING:
    from headrace.ids import TopicPartition
    from headrace.wire.message import Request
    from headrace.wire.messages.metadata import MetadataResponse

T = TypeVar("T")


class Admin:
    """Asks the brokers of one cluster. Close it, or use it in a `with`."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        timeout_s: float = 30.0,
        retry_after_s: float = RETRY_AFTER_S,
        client_id: str = "headrace-admin",
        connect: Callable[[Address], Link] | None = None,
        patience_s: float = PATIENCE_S,
        on_waiting: Callable[[Unreachable], None] | None = None,
        blocking_time: BlockingTime = REAL_TIME,
    ) -> None:
        """`patience_s` and `on_waiting` are for brokers that are just starting: `client.brokers.Brokers`."""
        self.timeout_s = timeout_s
        self._retry_after_s = retry_after_s
        self._time = blocking_time

        def open_connection(address: Address) -> Link:
            return Connection(address.host, address.port, client_id=client_id, timeout_s=timeout_s)

        addresses = parse_addresses(bootstrap_servers)
        self._metadata = ClusterMetadata(
            Brokers(
                addresses,
                connect=connect or open_connection,
                patience_s=patience_s,
                on_waiting=on_waiting,
                blocking_time=blocking_time,
            ),
            blocking_time,
        )

    @property
    def timeout_ms(self) -> int:
        """How long a broker may take over a request."""
        return int(self.timeout_s * 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._metadata.close()

    # Whom to ask.

    def ask_any(self, request: Request[R], *, at_most: int | None = None) -> R:
        """Ask some broker. `at_most` is the highest version wanted."""
        return self.settle(lambda: self._metadata.ask_any(request, at_most=at_most))

    def ask_any_once(self, request: Request[R]) -> R:
        """Ask some broker once, as part of an attempt. Raises Disconnected."""
        return self._metadata.ask_any(request)

    def ask_broker(self, broker_id: int, request: Request[R], *, at_most: int | None = None) -> R:
        """Ask this broker, and no other, until it answers."""
        return self.settle(lambda: self.ask_once(broker_id, request, at_most=at_most))

    def ask_once(self, broker_id: int, request: Request[R], *, at_most: int | None = None) -> R:
        """Ask this broker once, as part of an attempt that chooses the broker. Raises Disconnected."""
        self._metadata.cluster()  # so that the broker's address is known
        return self._metadata.ask(broker_id, request, at_most=at_most)

    def ask_controller(
        self,
        request: Request[R],
        *,
        errors_of: Callable[[R], Iterable[int]] = lambda _: (),
    ) -> R:
        """Ask the controller; again where `errors_of` finds that it has just moved."""

        def attempt() -> R:
            controller_id = self._metadata.cluster().controller_id
            answer = (
                self._metadata.ask_any(request)
                if controller_id < 0
                else self._metadata.ask(controller_id, request)
            )
            if ErrorCode.NOT_CONTROLLER in errors_of(answer):
                require(ErrorCode.NOT_CONTROLLER)
            return answer

        return self.settle(attempt)

    def versions_of(self, broker_id: int) -> VersionRanges:
        """The versions this broker offers, by API key."""

        def attempt() -> VersionRanges:
            self._metadata.cluster()
            return self._metadata.brokers.to(broker_id).negotiate()

        return self.settle(attempt)

    # What the cluster looks like.

    def cluster(self) -> Cluster:
        """The brokers and the controller; asked for once, and again after something moved."""
        return self.settle(self._metadata.cluster)

    def metadata(
        self, topics: Iterable[str] | None, *, create_missing: bool = False
    ) -> MetadataResponse:
        """Metadata of these topics, of all with None. Brokers may create missing ones if they are asked to."""
        names = None if topics is None else list(topics)
        return self.settle(lambda: self._metadata.refresh(names, may_create=create_missing))

    # Asking again.

    def settle(self, attempt: Callable[[], T]) -> T:
        """The result of `attempt`, repeated while it meets lost connections or errors that pass.

        An attempt asks each broker once, and looks anew for the one to ask: a broker that is gone does not use up the time.
        """
        patience = self._time.patience(self.timeout_s, retry_after_s=self._retry_after_s)
        while True:
            try:
                return attempt()
            except Unreachable:
                raise
            except (Disconnected, Refused) as failed:
                if isinstance(failed, Refused) and not passes_for_admin(failed.error_code):
                    raise
                if patience.is_over():
                    raise
            patience.pause()
            self._metadata.forget_cluster()

    def ask_leaders(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Mapping[TopicPartition, T | Refusal]],
        *,
        patience_s: float | None = None,
    ) -> dict[TopicPartition, T | Refusal]:
        """Ask each partition's leader with `ask`; partitions whose leader moved or is gone are asked for again.

        `ask` sends one request with `ask_once`. Leaders that were found before are asked without looking for them anew.
        Raises Disconnected where the leaders of some partitions cannot be reached in the end.
        """
        results: dict[TopicPartition, T | Refusal] = {}
        pending = list(partitions)
        patience = self._time.patience(
            self.timeout_s if patience_s is None else patience_s, retry_after_s=self._retry_after_s
        )
        while True:
            pending, lost = self._ask_leaders_once(pending, ask, results)
            if not pending or patience.is_over():
                break
            patience.pause()
            for each in pending:
                self._metadata.forget(each.topic)
        if lost is not None:
            raise lost
        return results

    def _ask_leaders_once(
        self,
        partitions: list[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Mapping[TopicPartition, T | Refusal]],
        results: dict[TopicPartition, T | Refusal],
    ) -> tuple[list[TopicPartition], Disconnected | None]:
        """Add answers to `results`. Returns the partitions to ask for again, and how a leader was lost, if one was."""
        again: list[TopicPartition] = []
        lost = None
        by_leader: dict[int, list[TopicPartition]] = {}
        for each, leader in self.settle(lambda: self._metadata.leaders_of(partitions)).items():
            if not isinstance(leader, Refusal):
                by_leader.setdefault(leader, []).append(each)
                continue
            results[each] = leader
            if passes_for_admin(leader.error_code):
                again.append(each)
        for leader, mine in by_leader.items():
            try:
                answers = ask(leader, mine)
            except Disconnected as error:
                lost = error
                answers = dict.fromkeys(mine, Refusal(ErrorCode.NETWORK_EXCEPTION))
            results |= answers
            again += [each for each, answer in answers.items() if _passes_for_leader(answer)]
        return again, lost


def _passes_for_leader(answer: object) -> bool:
    """Whether a leader's answer may be another one soon. Metadata knows the partition, so the leader will, too."""
    return isinstance(answer, Refusal) and (
        passes_for_admin(answer.error_code)
        or answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
