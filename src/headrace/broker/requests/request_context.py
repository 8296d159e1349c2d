"""Context of a request: what an API knows of it besides the body."""

from typing import NamedTuple

from headrace.broker.net.connection import Connection
from headrace.broker.security.principal import Principal


class RequestContext(NamedTuple):
    """Which API in which version, from which client, over which connection."""

    api_key: int
    version: int
    client_id: str
    connection: Connection

    @property
    def client_host(self) -> str:
        """The peer's address, in the form Kafka shows it."""
        return f"/{self.connection.peer_host}"

    @property
    def principal(self) -> Principal:
        """As whom the connection was authenticated."""
        return self.connection.principal

    @property
    def listener_name(self) -> str:
        """The listener that the connection was made to."""
        return self.connection.listener_name
