"""A refused request: why, in Kafka's error code and a sentence.

`Refusal` is the value, for one item of a request or for all of it. `Refused` carries it to whoever answers, where a return
value cannot. Both are expected: they end in an answer, never in a broken connection.
"""

from typing import NamedTuple, Self

from headrace.errors import HeadraceError
from headrace.wire.error_code import ErrorCode


class RecordError(NamedTuple):
    """What is wrong with one record of a refused batch."""

    batch_index: int
    message: str


class Refusal(NamedTuple):
    """The error of one item or of a whole request. Without a message the error code says it all.

    A batch that a log refuses may name the records that are to blame.
    """

    error_code: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()

    @property
    def text(self) -> str:
        """The message, or what Kafka says for the error code."""
        return self.message or self.error_code.message

    def __str__(self) -> str:
        return self.text


class Refused(HeadraceError):
    """A request was refused."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        self.refusal = Refusal(error_code, message)
        super().__init__(self.refusal.text)

    @classmethod
    def of(cls, refusal: Refusal) -> Self:
        return cls(refusal.error_code, refusal.message)

    @property
    def error_code(self) -> ErrorCode:
        return self.refusal.error_code

    @property
    def message(self) -> str | None:
        return self.refusal.message


def refusal_of(error_code: int, message: str | None = None) -> Refusal | None:
    """The refusal that the error fields of an answer mean, or None where they mean none."""
    return Refusal(ErrorCode.of(error_code), message) if error_code else None


def require(error_code: int, message: str | None = None) -> None:
    """Raise Refused where the error fields of an answer say so."""
    refusal = refusal_of(error_code, message)
    if refusal is not None:
        raise Refused.of(refusal)
