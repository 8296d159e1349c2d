"""Prometheus' text format 0.0.4: families with their help and type, samples, escaped labels (pure)."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Literal, TypeAlias

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Kind: TypeAlias = Literal["counter", "gauge", "histogram", "summary"]
Sample: TypeAlias = tuple[str, float]
"""Labels as `labels` writes them ("" for none), and a value."""

# The label as the public rule for Kafka's percentiles writes it, and the share of the calls.
QUANTILES: Final = (
    ("0.50", 0.5),
    ("0.75", 0.75),
    ("0.95", 0.95),
    ("0.98", 0.98),
    ("0.99", 0.99),
    ("0.999", 0.999),
)

# So many lines are made without a pause: about a millisecond of work.
_LINES_PER_PIECE: Final = 500
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def escape(value: str) -> str:
    """A label's value as it may stand between quotes."""
    return value.translate(_ESCAPES)


def labels(**values: str | int) -> str:
    """Labels in braces."""
    inner = ",".join(f'{name}="{escape(str(value))}"' for name, value in values.items())
    return f"{{{inner}}}"


def family(name: str, kind: Kind, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """All lines of one metric; they may not be mixed with those of another. `text` is one line without backslashes."""
    yield _head(name, kind, text)
    for sample_labels, value in samples:
        yield f"{name}{sample_labels} {value}\n"


def single(name: str, kind: Kind, text: str, value: float) -> Iterator[str]:
    """A metric with one sample and no labels."""
    yield f"{_head(name, kind, text)}{name} {value}\n"


def suffixed(
    name: str, kind: Kind, text: str, samples: Iterable[tuple[str, str, float]]
) -> Iterator[str]:
    """A histogram or summary, whose samples have a suffix each: `_bucket`, `_sum`, `_count` or none."""
    yield _head(name, kind, text)
    for suffix, sample_labels, value in samples:
        yield f"{name}{suffix}{sample_labels} {value}\n"


def in_pieces(lines: Iterator[str]) -> Iterator[str]:
    """Lines, of which some may be empty, gathered into pieces that each take little time to make."""
    while gathered := list(islice(lines, _LINES_PER_PIECE)):
        yield "".join(gathered)


def _head(name: str, kind: Kind, text: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
