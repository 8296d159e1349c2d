"""Which writes to `_schemas` count: those of the instance whose claim to be primary is the newest in the topic. Pure.

The group protocol chooses who tries to be primary, but an instance that was paused may still believe that it is. So a
primary first writes a claim with a number above all it has read, and every record carries its claim. Because all
instances read the same order, they all refuse the same records. Records without a claim, as other registries write them,
count.
"""

from __future__ import annotations

from typing import Final

import msgspec

HEADER: Final = "headrace.registry.claim"


class Claim(msgspec.Struct, frozen=True):
    """A number and who made it; no two instances share an owner."""

    number: int
    owner: str


_decode = msgspec.json.Decoder(Claim).decode
_encode = msgspec.json.Encoder().encode


def header_of(claim: Claim) -> tuple[str, bytes]:
    """The record header that carries a claim."""
    return HEADER, _encode(claim)


def claim_in(headers: list[tuple[str, bytes]] | None) -> Claim | None:
    """The claim that a record carries."""
    for name, value in headers or ():
        if name == HEADER:
            try:
                return _decode(value)
            except msgspec.MsgspecError:
                return None
    return None


class Claims:
    """The newest claim."""

    def __init__(self) -> None:
        self.newest = Claim(0, "")

    def accepts(self, claim: Claim | None, *, is_new_claim: bool) -> bool:
        """Whether the next record of the topic counts. `is_new_claim`: it was written to claim, not to change anything."""
        if claim is None:
            return True
        if is_new_claim and claim.number > self.newest.number:
            self.newest = claim
        return claim == self.newest
