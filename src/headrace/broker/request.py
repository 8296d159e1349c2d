"""What an API knows of a request beside its body."""

from typing import NamedTuple

from headrace.broker.connection import Connection


class RequestContext(NamedTuple):
    """Who asks, how, and through which door."""

    api_key: int
    version: int
    client_id: str
    connection: Connection

    @property
    def client_host(self) -> str:
        """The peer's address, in the form Kafka shows it."""
        return f"/{self.connection.peer_host}"
