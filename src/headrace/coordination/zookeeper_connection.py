"""kazoo's connection to ZooKeeper, with two additions: it tells when the session was confirmed, and it gives up a silent server.

A session is confirmed by the answer to a request that the *leader* of the ensemble has seen: a connect, a write, a sync.
Answers to reads and pings do not count, because a follower that has lost its leader goes on giving them while the leader ends
the session. The moment that counts is that at which the request was sent.

kazoo takes every request that it sends for a sign of life, so that it never notices a dead link on which requests are sent.
Here a connection is dropped when a request has been without an answer for half of the session time-out. The first answer on a new
connection is awaited for a quarter of it, because a server that has just opened its port may never give it, and there must
be time for another attempt before the session ends.

Imported when a session opens, as kazoo is.
"""

from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect

from headrace.coordination.lease import OnConfirmed, clock

_ANSWER_SHARE: Final = 1 / 2  # of the session time-out
_CONNECT_SHARE: Final = 1 / 4
_SHORTEST_CONNECT_S: Final = 1.0
_SEEN_BY_LEADER: Final = frozenset(
    (1, 2, 5, 9, 14, 15)
)  # create, delete, set, sync, multi, create2


class MeasuredConnection(ConnectionHandler):
    """Everything here runs on kazoo's thread, `on_confirmed` included."""

    def __init__(self, client: KazooClient, on_confirmed: OnConfirmed) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=client.logger)
        self._on_confirmed = on_confirmed
        self._granted_s = 0.0
        self._session_id = 0
        self._unanswered: dict[int, tuple[float, int]] = {}  # xid → when it was sent, kind

    def _invoke(self, timeout: float, request: object, xid: int | None = None) -> Any:
        if not isinstance(request, Connect):
            return super()._invoke(timeout, request, xid)
        self._unanswered.clear()
        sent_at = clock()
        result = super()._invoke(min(timeout, connect_timeout_s(self.client)), request, xid)
        answer = result[0]
        if answer.time_out > 0:
            self._session_id, self._granted_s = answer.session_id, answer.time_out / 1000
            self._on_confirmed(self._session_id, sent_at, self._granted_s)
        return result

    def _submit(self, request: Any, timeout: float, xid: int | None = None) -> None:
        if xid is not None:
            now = clock()
            for sent_at, _ in self._unanswered.values():  # the first is the oldest
                if now - sent_at > self._granted_s * _ANSWER_SHARE:
                    raise ConnectionDropped(f"no answer for {now - sent_at:.1f} s")
                break
            if xid > 0:
                self._unanswered[xid] = now, request.type
        super()._submit(request, timeout, xid)

    def _read_header(self, timeout: float) -> Any:
        read = super()._read_header(timeout)
        header = read[0]
        sent_at, kind = self._unanswered.pop(header.xid, (0.0, 0))
        if kind in _SEEN_BY_LEADER and header.err == 0:
            self._on_confirmed(self._session_id, sent_at, self._granted_s)
        return read


class QuickDialer(SequentialThreadingHandler):
    """kazoo's threads. Dialling a server ends in time for another attempt before the session is over."""

    def __init__(self, session_timeout_s: float) -> None:
        super().__init__()
        self._longest_s = max(_SHORTEST_CONNECT_S, session_timeout_s * _CONNECT_SHARE)

    def create_connection(self, *args: Any, **rest: Any) -> Any:
        return super().create_connection(
            *args, **rest | {"timeout": min(rest["timeout"], self._longest_s)}
        )


def connect_timeout_s(client: KazooClient) -> float:
    """How long the first answer on a new connection is awaited."""
    return max(_SHORTEST_CONNECT_S, client._session_timeout / 1000 * _CONNECT_SHARE)


def measured_client(hosts: str, timeout_s: float, on_confirmed: OnConfirmed) -> KazooClient:
    """A client whose session is measured."""
    client = KazooClient(
        hosts,
        timeout=timeout_s,
        handler=QuickDialer(timeout_s),
        connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 1.0},
    )
    client._connection = MeasuredConnection(client, on_confirmed)
    return client
