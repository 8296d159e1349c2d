"""What decoding a column gives: its values, and why some rows have none."""

from dataclasses import dataclass, field

import pyarrow as pa

from headrace.errors import HeadraceError


class Undecodable(HeadraceError):
    """Bytes that are not what their schema says; the message says why."""


@dataclass(slots=True)
class Decoded:
    """An array, null where decoding failed, and why, by row."""

    values: pa.Array
    errors: dict[int, str] = field(default_factory=dict)


class Unencodable(HeadraceError):
    """A value that its schema does not allow; the message says which and why."""
