"""The steps between decode and handle, in their order.

A request passes these stages: decode, authenticate, authorise, quota, handle, encode. `dispatch` decodes, handles and encodes. The
stages between are declared here, each as a step that may refuse a request before its handler sees it. A step that
a broker does not have is None. Requests of every API pass the steps, those that a fast path answers included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.broker.net.frame_buffer import Frame
from headrace.broker.requests.request_context import RequestContext
from headrace.wire.error_code import ErrorCode


class RequestStep(Protocol):
    """Looks at requests before they are handled. Called once for each frame."""

    def __call__(
        self, context: RequestContext, request: Any, frames: Sequence[Frame]
    ) -> ErrorCode | None:
        """None lets the request pass; an error code is its answer. MalformedMessage closes the connection.

        `frames` are the request's own, or those of several requests that differ in nothing but their records. These come
        from a fast path, which leaves the records out of `request`. It hands over the same `context` and `request` each
        time, so that a step can remember for these objects what it has decided.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSteps:
    """The steps of one broker, in the order in which requests pass them."""

    authenticate: RequestStep | None = None
    authorise: RequestStep | None = None
    quota: RequestStep | None = None

    def in_order(self) -> tuple[RequestStep, ...]:
        """The steps that this broker has."""
        steps = (self.authenticate, self.authorise, self.quota)
        return tuple(step for step in steps if step is not None)
