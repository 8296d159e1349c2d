"""Headrace's own messages among brokers, in the form of the generated ones. Not advertised, and not Kafka's.

Keys from 1000 on, far above anything Kafka has. What they carry as bytes is msgpack of the controller's own types.
"""

from __future__ import annotations

from typing import ClassVar, Final

from headrace.wire.message import Schema, equal, show

# Brokers send them under client ids of this, a dash and their own id.
BROKER_CLIENT: Final = "broker"


class PullChangesResponse:
    """The controller's changes from an offset on."""

    __slots__ = ("batch", "controller_id", "error_code")
    API_KEY: ClassVar[int] = 1000
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[Schema] = (
        ("error_code", "int16", 0, 0, 0),
        ("controller_id", "int32", 0, 0, -1),
        ("batch", "bytes", 0, 0, b""),
    )

    def __init__(self, *, error_code: int = 0, controller_id: int = -1, batch: bytes = b"") -> None:
        self.error_code = error_code
        self.controller_id = controller_id
        self.batch = batch

    __repr__ = show
    __eq__ = equal


class PullChangesRequest:
    """A broker asks for the controller's changes, and waits a while for the first."""

    __slots__ = ("controller_epoch", "max_wait_ms", "offset")
    API_KEY: ClassVar[int] = 1000
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    RESPONSE: ClassVar[type[PullChangesResponse]] = PullChangesResponse
    SCHEMA: ClassVar[Schema] = (
        ("controller_epoch", "int32", 0, 0, -1),
        ("offset", "int64", 0, 0, 0),
        ("max_wait_ms", "int32", 0, 0, 0),
    )

    def __init__(
        self, *, controller_epoch: int = -1, offset: int = 0, max_wait_ms: int = 0
    ) -> None:
        self.controller_epoch = controller_epoch
        self.offset = offset
        self.max_wait_ms = max_wait_ms

    __repr__ = show
    __eq__ = equal


class AskControllerResponse:
    """The controller's answer to an event."""

    __slots__ = ("answer", "controller_id", "error_code")
    API_KEY: ClassVar[int] = 1001
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    SCHEMA: ClassVar[Schema] = (
        ("error_code", "int16", 0, 0, 0),
        ("controller_id", "int32", 0, 0, -1),
        ("answer", "bytes", 0, 0, b""),
    )

    def __init__(
        self, *, error_code: int = 0, controller_id: int = -1, answer: bytes = b""
    ) -> None:
        self.error_code = error_code
        self.controller_id = controller_id
        self.answer = answer

    __repr__ = show
    __eq__ = equal


class AskControllerRequest:
    """A broker has something for the controller to decide."""

    __slots__ = ("event", "kind")
    API_KEY: ClassVar[int] = 1001
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int | None] = None
    RESPONSE: ClassVar[type[AskControllerResponse]] = AskControllerResponse
    SCHEMA: ClassVar[Schema] = (
        ("kind", "string", 0, 0, ""),
        ("event", "bytes", 0, 0, b""),
    )

    def __init__(self, *, kind: str = "", event: bytes = b"") -> None:
        self.kind = kind
        self.event = event

    __repr__ = show
    __eq__ = equal
