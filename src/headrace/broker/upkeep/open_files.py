"""Divides the process's limit of open files among segment files, connections and others.

The rest is for connections to other brokers and to the store, for files that are written aside, and for syncs under way.
"""

import resource
from typing import Final, NamedTuple

_UNLIMITED: Final = 2**31 - 1


class OpenFileShares(NamedTuple):
    """How many may be open at once."""

    segment_files: int
    connections: int


def shares_of(limit: int) -> OpenFileShares:
    """A third is for segment files: one that was closed to make room is opened again, a connection cannot be. Pure."""
    segment_files = max(64, limit // 3)
    return OpenFileShares(segment_files, max(1, limit - segment_files - limit // 8))


def raise_limit() -> OpenFileShares:
    """Raise the soft limit to the hard one. Returns the shares of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return current_shares()


def current_shares() -> OpenFileShares:
    """The shares of the limit as it is."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return shares_of(_UNLIMITED if soft == resource.RLIM_INFINITY else soft)
