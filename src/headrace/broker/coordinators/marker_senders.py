"""Marker senders of the cluster's brokers, as the leader sees them: refuses markers from a connection that its sender has given up.

A sender whose connection is lost closes it and repeats its markers over a new one. The first copy may still lie here unread. Under
transaction version 1 the next transaction of the producer has the same epoch, so that copy would end it. Connections are numbered
in the order in which they were accepted, which is the order in which a sender opened them.
"""

from collections.abc import Callable

_PREFIX = "broker-"
_SUFFIX = "-txn-marker-sender"


def marker_sender_client_id(broker_id: int) -> str:
    """The client id of a broker's requests with markers."""
    return f"{_PREFIX}{broker_id}{_SUFFIX}"


class MarkerSenders:
    """One for a broker."""

    def __init__(self, is_broker: Callable[[int], bool]) -> None:
        """`is_broker` says whether a broker with this id is registered."""
        self._is_broker = is_broker
        self._newest: dict[str, int] = {}  # client id → connection; of known brokers only

    def is_given_up(self, client_id: str, connection_id: int) -> bool:
        """Whether this sender has written markers over a newer connection. Tools have no such client id, and are never refused."""
        newest = self._newest.get(client_id, -1)
        if connection_id > newest and self._is_of_broker(client_id):
            self._newest[client_id] = connection_id
        return connection_id < newest

    def _is_of_broker(self, client_id: str) -> bool:
        broker_id = client_id.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        # No more digits than an id has: longer texts are slow to convert.
        if not (broker_id.isdecimal() and len(broker_id) <= 10):
            return False
        number = int(broker_id)
        return client_id == marker_sender_client_id(number) and self._is_broker(number)
