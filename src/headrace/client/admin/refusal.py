"""What a broker refused, and in which words."""

from dataclasses import dataclass

from headrace.errors import HeadraceError
from headrace.wire.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error a broker gave for one item of a request."""

    code: ErrorCode
    message: str

    def __str__(self) -> str:
        return self.message


class Refused(HeadraceError):
    """A broker refused the whole request."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)

    @property
    def code(self) -> ErrorCode:
        return self.refusal.code


def refusal_of(error_code: int, message: str | None = None) -> Refusal | None:
    """The refusal that an answer's error fields mean, or None where they mean none."""
    if not error_code:
        return None
    code = ErrorCode.of(error_code)
    return Refusal(code, message or code.message)


def require(error_code: int, message: str | None = None) -> None:
    """Raise Refused where an answer's error fields say so."""
    refusal = refusal_of(error_code, message)
    if refusal is not None:
        raise Refused(refusal)
