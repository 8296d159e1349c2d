"""uvicorn's HTTP protocol with a deadline for the headers of a request. A rim module.

uvicorn closes a connection that has been silent since its last answer. One that has sent nothing yet, or a part of the
headers, it keeps for ever, and connections are limited. Here the headers must be complete within a time that counts from
the beginning of the connection, or from the first bytes behind the last answer. Bodies are left to the program.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connections(Protocol):
    """Counts connections."""

    def connection_opened(self) -> None:
        """One more."""

    def connection_closed(self) -> None:
        """One less."""


def protocol_with_deadline(
    timeout_s: float, connections: Connections | None = None
) -> type[asyncio.Protocol]:
    """The class of protocols to give to uvicorn."""

    class CountedProtocol(HeaderDeadline):
        headers_timeout_s = timeout_s
        counted_by = connections

    return CountedProtocol


class HeaderDeadline(H11Protocol):
    """One connection."""

    headers_timeout_s: float
    counted_by: Connections | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        if self.counted_by is not None:
            self.counted_by.connection_opened()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read what came; the deadline ends with the headers."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._forget()
        if self.counted_by is not None:
            self.counted_by.connection_closed()
        super().connection_lost(exc)

    @property
    def _awaits_headers(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        if not self._awaits_headers:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.headers_timeout_s, self._on_deadline)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_deadline(self) -> None:
        self._deadline = None
        if self._awaits_headers and not self.transport.is_closing():
            self.transport.close()
