"""Connections as their listeners count them."""

import pytest

from headrace.broker.net.connection import Connection
from headrace.broker.net.listener import ConnectionCounts, ConnectionLimits
from tests.unit.broker.apis.one_broker import Listener


@pytest.fixture
def counts() -> ConnectionCounts:
    limits = ConnectionLimits(
        max_connections=2,
        max_connections_per_ip=2,
        connections_max_idle_ms=1,
        max_frame_bytes=1,
        backlog=1,
    )
    return ConnectionCounts(limits)


def test_no_number_of_a_connection_is_used_again(
    counts: ConnectionCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a group remembers of a connection that is gone must not fit another one."""
    listeners = Listener("CLIENTS"), Listener("INTERNAL")
    seen: set[int] = set()
    for number in range(100):
        listener = listeners[number % 2]
        monkeypatch.setattr(listener, "next_connection_id", counts.next_id)
        connection = Connection(listener)
        assert counts.add(connection)
        seen.add(connection.connection_id)
        counts.remove(connection)
        del connection
    assert len(seen) == 100
