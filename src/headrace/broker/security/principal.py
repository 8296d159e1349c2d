"""Who sends a request: a principal, as Kafka names it (pure)."""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """The identity that a connection was authenticated as, for instance User:alice."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""The principal of every connection to a listener without authentication (PLAINTEXT)."""
