"""Feed of the controller's changes: applies each batch to the cluster view, then calls the parts of the broker in order.

Owns that order, which `wiring` declares in one list. A batch is handled as a whole before the next one, in one step of the event
loop, so that all parts act on the same cluster state. `controller_link` makes sure that each batch comes once and in order.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.controller.changes import ChangeBatch


class FeedListener(NamedTuple):
    """A part of the broker that acts on changes, and what it does about them."""

    purpose: str
    hear: Callable[[ChangeBatch], None]


class ClusterFeed:
    """One event loop owns it."""

    __slots__ = ("_cluster", "after", "before")

    def __init__(
        self,
        cluster: ClusterView,
        *,
        before: Sequence[FeedListener] = (),
        after: Sequence[FeedListener],
    ) -> None:
        """`before` compares a batch with the cluster state that it changes; `after` acts on the changed state."""
        self._cluster = cluster
        self.before = tuple(before)
        self.after = tuple(after)

    def apply(self, batch: ChangeBatch) -> None:
        """Apply a batch of changes that the controller published."""
        for listener in self.before:
            listener.hear(batch)
        self._cluster.apply(batch)
        for listener in self.after:
            listener.hear(batch)
