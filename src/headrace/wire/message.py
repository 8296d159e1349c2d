"""What every message class shares: the form of its schema, comparison, a readable form.

A message class has `__slots__`, a keyword-only `__init__` with Kafka's defaults, and `SCHEMA`: one row
per field in wire order,

    (name, type, first_version, last_version, default[, nullable_from[, tag, tagged_from]])

where `type` is the name of a primitive or a message class, and a one-element tuple of it is an array.
It is not a dataclass, because loading 90 modules of those would cost more than starting a broker may.

A tagged struct that is not on the wire is None.
"""

from typing import ClassVar, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from headrace.ids import NO_TOPIC_ID

__all__ = ("NO_UUID", "UUID", "Message", "Request", "Response", "Schema", "equal", "show")

Schema: TypeAlias = tuple[tuple[object, ...], ...]
NO_UUID: Final = NO_TOPIC_ID


class Message(Protocol):
    """A request, a response, or one of the blobs inside them that have versions of their own."""

    VERSIONS: ClassVar[tuple[int, int]]  # first and last
    FLEXIBLE_FROM: ClassVar[int | None]
    SCHEMA: ClassVar[Schema]


class Response(Message, Protocol):
    """An answer to the request with the same key."""

    API_KEY: ClassVar[int]


R_co = TypeVar("R_co", bound=Response, covariant=True)


class Request(Protocol[R_co]):
    """A request, which knows the class of its answer."""

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[tuple[int, int]]
    FLEXIBLE_FROM: ClassVar[int | None]
    SCHEMA: ClassVar[Schema]

    @property
    def RESPONSE(self) -> type[R_co]: ...  # noqa: N802 - a class attribute, like its siblings


def equal(self: object, other: object) -> bool:
    """Same class, same fields; a list and a tuple of equal elements are the same array."""
    if type(self) is not type(other):
        return False
    return all(_same(getattr(self, name), getattr(other, name)) for name in _fields(self))


def show(self: object) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _fields(self))
    return f"{type(self).__name__}({shown})"


def _fields(message: object) -> tuple[str, ...]:
    names: tuple[str, ...] = type(message).__slots__  # type: ignore[attr-defined]  # every message has them
    return names


def _same(left: object, right: object) -> bool:
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right
