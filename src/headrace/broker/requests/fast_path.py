"""Protocols of a fast path. An API may declare one, which answers requests of the same form as an earlier one without decoding them.

A fast path learns from requests that passed all stages. What it learns belongs to one connection, because another one may
have another principal. `dispatch` runs the steps between decode and handle for recognised requests, too. A request
that a fast path cannot answer exactly as the API's handler would, it leaves to the handler.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from headrace.broker.net.connection import Answer, DelayedAnswer
from headrace.broker.net.frame_buffer import Frame
from headrace.broker.requests.request_context import RequestContext

Recognised: TypeAlias = tuple[int, Any, Any]
"""How many requests at the head of a queue ask for the same; what each asks for, as it would be decoded but without records;
and what the fast path needs to answer them. A plain tuple, because it is made for each request."""


class KnownRequests(Protocol):
    """The requests of one connection that a fast path knows; `Connection.known_requests`."""

    @property
    def context(self) -> RequestContext:
        """Of all of them."""

    def recognise(self, frames: Sequence[Frame]) -> Recognised | None:
        """The leading frames that have the form of a known request; None if the first has none."""

    def first(self, recognised: Recognised, count: int) -> Recognised:
        """At most `count` of the recognised requests, from the first."""

    def answer(
        self, recognised: Recognised, frames: Sequence[Frame]
    ) -> Sequence[Answer | DelayedAnswer]:
        """Handle the recognised requests, or only the first of them, or none. Returns whole answers, in order."""


class FastPath(Protocol):
    """What an API declares: `fast_path`, with dependencies that are bound like those of `handle`."""

    def learn(self, frame: Frame, context: RequestContext, request: Any) -> None:
        """Store in `Connection.known_requests` how to recognise requests like this one, which has passed all stages."""
