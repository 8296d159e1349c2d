"""Connections to the brokers of one cluster, blocking, opened when first needed and kept.

It owns its connections and what it was told about where brokers live; it is used by one thread. It knows neither
topics nor groups, and it repeats no request: whoever asked knows whether that is safe.
"""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from headrace.client.exchange import Disconnected, R, VersionRanges
from headrace.client.retries import REAL_TIME, BlockingTime
from headrace.wire.message import Request

DEFAULT_PORT = 9092
PATIENCE_S = 3.0  # a broker that is just starting gets this long before it counts as unreachable
_SILENT_S = 1.0  # of that time, before anybody is told


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Link(Protocol):
    """What is needed of a connection."""

    def send(self, request: Request[R], version: int | None = None) -> R: ...

    def negotiate(self) -> VersionRanges: ...

    def close(self) -> None: ...


L = TypeVar("L", bound=Link)


class Unreachable(Disconnected):
    """None of the bootstrap servers could be reached."""

    def __init__(self, addresses: Iterable[Address], reason: str) -> None:
        self.addresses = tuple(addresses)
        self.reason = reason
        super().__init__(f"no broker at {', '.join(map(str, self.addresses))}: {reason}")


def parse_addresses(bootstrap_servers: str) -> list[Address]:
    """`host:port,[::1]:port,host` as addresses. Raises ValueError with the part that is none."""
    addresses = []
    for part in bootstrap_servers.split(","):
        name = part.strip().rpartition("://")[2]
        if not name:
            continue
        host, colon, port = name.rpartition(":")
        if not colon or name.endswith("]"):
            host, port = name, str(DEFAULT_PORT)
        if not port.isdecimal() or not 0 < int(port) < 65536 or not host.strip("[]"):
            raise ValueError(f"'{part.strip()}' is not of the form host:port")
        addresses.append(Address(host.strip("[]"), int(port)))
    if not addresses:
        raise ValueError("no address was given")
    return addresses


class Brokers(Generic[L]):
    """Who can be asked."""

    def __init__(
        self,
        bootstrap: Iterable[Address],
        *,
        connect: Callable[[Address], L],
        patience_s: float = PATIENCE_S,
        on_waiting: Callable[[Unreachable], None] | None = None,
        blocking_time: BlockingTime = REAL_TIME,
    ) -> None:
        """`on_waiting` is told once that nobody answers yet, a second after the first attempt."""
        self._bootstrap = tuple(bootstrap)
        self._connect = connect
        self._patience_s = patience_s
        self._on_waiting = on_waiting
        self._time = blocking_time
        self._addresses: dict[int, Address] = {}
        self._open: dict[Address, L] = {}
        self._failed: dict[Address, None] = {}  # whose connection broke, the last one last

    def learn(self, addresses: dict[int, Address]) -> None:
        """Where the brokers of the cluster live, as metadata said last."""
        self._addresses = dict(addresses)

    def any(self) -> L:
        """A connection to some broker: one that is open, else the first that answers."""
        for connection in self._open.values():
            return connection
        patience, silence = self._time.patience(self._patience_s), self._time.patience(_SILENT_S)
        while True:
            reasons = []
            for address in self._in_order():
                try:
                    return self._to(address)
                except Disconnected as refused:
                    reasons.append(_reason(refused))
            unreachable = Unreachable(self._bootstrap, reasons[-1])
            if patience.is_over():
                raise unreachable
            if self._on_waiting is not None and silence.is_over():
                self._on_waiting(unreachable)
                self._on_waiting = None
            patience.pause()

    def _in_order(self) -> list[Address]:
        """Whom to try: a broker that hangs accepts connections, so one that did not answer comes behind the others."""
        known = dict.fromkeys((*self._addresses.values(), *self._bootstrap))
        good = [address for address in known if address not in self._failed]
        return good + [address for address in self._failed if address in known]

    def to(self, broker_id: int) -> L:
        """A connection to this broker. Raises Disconnected where it cannot be reached or is not known."""
        address = self._addresses.get(broker_id)
        if address is None:
            raise Disconnected(f"broker {broker_id} is not known to the cluster")
        return self._to(address)

    def _to(self, address: Address) -> L:
        connection = self._open.get(address)
        if connection is None:
            connection = self._open[address] = self._connect(address)
        return connection

    def drop(self, connection: L) -> None:
        """Forget a connection that broke."""
        connection.close()
        for address, known in list(self._open.items()):
            if known is connection:
                del self._open[address]
                self._failed.pop(address, None)
                self._failed[address] = None

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()


def _reason(refused: Disconnected) -> str:
    cause = refused.__cause__
    return (isinstance(cause, OSError) and cause.strerror) or str(cause or refused)
