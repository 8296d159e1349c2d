"""What Spark has to complain about, in a line for a person. Its traces, Java's and Python's, are in its log. Pure."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from headrace.errors import HeadraceError

# The last line of a Python trace: a class, with its module unless Python brings it along, and what it says.
_OURS: Final = re.compile(r"headrace\.[\w.]+: (.+)")
_RAISED: Final = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: .*)?")
_TRACE: Final = "Traceback (most recent call last):"
_OF_JAVA: Final = re.compile(
    r'(?:: |Caused by: |Exception in thread "[^"]*" )?(?:[a-z]\w*\.)+[A-Z][\w$]*: (.+)'
)
_REMARKS: Final = ("WARNING", "Warning", "Using Spark's default", "Setting ", "To adjust logging")
_STATE: Final = re.compile(r"[.;]? SQLSTATE: \w+(?:; line \d+ pos \d+;?)?$")


def first_words(text: str) -> str:
    """What an error is about: the last words of a Python trace in it, ours before others', else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [found[1] for found in map(_OURS.fullmatch, lines) if found]
    if ours:
        return ours[-1]
    if any(_TRACE in line for line in lines):
        raised = [line for line in lines if _RAISED.fullmatch(line)]
        if raised:
            return raised[-1]
    return _STATE.sub("", lines[0]) if lines else "no reason was given"


def thrown_by_java(text: str) -> str | None:
    """What the first of Java's exceptions in a text says."""
    return next((found[1] for found in map(_OF_JAVA.fullmatch, text.splitlines()) if found), None)


def why_not_started(said: str, logged: str) -> str:
    """Why Spark did not come up: what Java threw, as it was told or logged, else the first thing in the log that is no remark."""
    thrown = thrown_by_java(said) or thrown_by_java(logged)
    if thrown is not None:
        return thrown
    lines = [line.strip() for line in logged.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(_REMARKS)), first_words(said))


class SparkFailed(HeadraceError):
    """Spark threw what PySpark has no words for: mostly because it has come to an end."""


@contextmanager
def java_told() -> Iterator[None]:
    """Raises SparkFailed in place of the bridge's own errors, which bring Java's whole stack."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("py4j."):
            raise
        text = str(error)
        raise SparkFailed(f"Spark failed: {thrown_by_java(text) or first_words(text)}") from error
