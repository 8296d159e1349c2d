"""Which records of `_schemas` count: those written under the newest claim to be the primary. Pure.

The group protocol elects the primary, but an instance that was paused may still believe that it is the primary. So a new
primary first writes a claim record, and every later record of it carries the offset of that claim record. A record under
an older claim does not count. All instances read the same order, so all of them leave out the same records. Records
without a claim, as other registries write them, count.

Compaction removes claim records but the last one, because they share a key. What counted still counts afterwards: a
record's own claim is at least as new as every claim before it. What did not count might count afterwards, if it is the
newest record of its key; `keys_to_repeat` has those keys, and the primary writes what holds for them once more.
"""

from __future__ import annotations

from typing import Final

Headers = list[tuple[str, bytes]]

_NEW_CLAIM: Final = "headrace.registry.new.claim"
_CLAIM: Final = "headrace.registry.claim"
_NONE: Final = -1


def new_claim_header(owner: str) -> tuple[str, bytes]:
    """The header that makes a record a claim; `owner` is told to whoever reads the topic."""
    return _NEW_CLAIM, owner.encode()


def claim_header(claim: int) -> tuple[str, bytes]:
    """The header of a record that is written under a claim: the offset of the claim record."""
    return _CLAIM, str(claim).encode()


class Claims:
    """Reads the records in the topic's order, and tells which of them count."""

    def __init__(self) -> None:
        self.newest = _NONE  # the offset of the newest claim record that is known of
        # Keys whose newest record does not count, in the order of those records.
        self.keys_to_repeat: dict[bytes, None] = {}

    def accept(self, offset: int, key: bytes, headers: Headers | None) -> bool:
        """Take in the next record. Returns whether it counts."""
        found = dict(headers or ())
        if _NEW_CLAIM in found:
            self.newest = offset
            return True
        claim = _offset_in(found.get(_CLAIM))
        if claim is not None and claim < self.newest:
            self.keys_to_repeat.pop(key, None)
            self.keys_to_repeat[key] = None
            return False
        if claim is not None:
            self.newest = claim  # the claim record itself may have been compacted away
        self.keys_to_repeat.pop(key, None)
        return True


def _offset_in(header: bytes | None) -> int | None:
    if header is None or not header.isdigit():
        return None
    return int(header)
