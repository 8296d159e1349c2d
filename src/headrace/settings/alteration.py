"""One change that IncrementalAlterConfigs asks for."""

from enum import IntEnum
from typing import NamedTuple


class AlterOp(IntEnum):
    """What IncrementalAlterConfigs may do with one config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One config to change. `op` is as it came over the wire."""

    name: str
    op: int
    value: str | None
