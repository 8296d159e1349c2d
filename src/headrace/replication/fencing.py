"""Fencing by leader epoch: compares the epoch in a request with that of the replica (pure)."""

from typing import Final

from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

ANY_EPOCH: Final = -1


def refuse_epoch(asked: int, current: int) -> Refusal | None:
    """The error code for a request that names the leader epoch `asked`; None if it is the current one or the request names none."""
    if asked in (ANY_EPOCH, current):
        return None
    if asked < current:
        return Refusal(ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {current} by now")
    return Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH, f"the leader epoch is still {current}")
