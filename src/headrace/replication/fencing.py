"""Whether two sides mean the same leader epoch (pure)."""

from typing import Final

from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

ANY_EPOCH: Final = -1


def refuse_epoch(asked: int, current: int) -> Refusal | None:
    """What to say to a request that believes in the epoch `asked`; nothing if it is right, or does not care."""
    if asked in (ANY_EPOCH, current):
        return None
    if asked < current:
        return Refusal(ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {current} by now")
    return Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH, f"the leader epoch is still {current}")
