"""Counters of cluster events for metrics: ISR changes, unclean elections, changes of the session (pure).

Also knows the present state of the session with the coordination store. Each fact is counted by one broker: a change of the ISR by the
partition's leader, an election by the controller.
"""

from headrace.controller.changes import ChangeBatch, PartitionChanged, TopicDeleted
from headrace.controller.cluster_state import ClusterState
from headrace.controller.values import PartitionState
from headrace.coordination.store import SessionState


class ClusterCounts:
    """Plain numbers since the broker started."""

    __slots__ = (
        "isr_expands",
        "isr_shrinks",
        "session_connects",
        "session_disconnects",
        "session_expires",
        "session_state",
        "store_away_since_ms",
        "unclean_elections",
    )

    def __init__(self) -> None:
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.unclean_elections = 0
        self.session_disconnects = 0
        self.session_expires = 0
        self.session_connects = 0
        self.session_state = SessionState.CONNECTED  # a broker starts with a session
        self.store_away_since_ms: int | None = None

    def note_changes(self, broker_id: int, known: ClusterState, batch: ChangeBatch) -> None:
        """Count the changes in a batch by comparing it with the `known` cluster state, before the batch is applied."""
        if batch.is_snapshot:
            return  # a snapshot may contain changes of long ago, under other leaders
        deleted: set[str] = set()
        for change in batch.changes:
            if type(change) is TopicDeleted:
                deleted.add(change.name)  # another topic may get this name
            elif type(change) is PartitionChanged and change.topic not in deleted:
                before = known.partition(change.topic, change.index)
                if before is not None:
                    self._note_change(broker_id, known, before, change.partition)

    def _note_change(
        self, broker_id: int, known: ClusterState, before: PartitionState, after: PartitionState
    ) -> None:
        if after.leader == before.leader == broker_id:
            self.isr_shrinks += bool(set(before.isr) - set(after.isr))
            self.isr_expands += bool(set(after.isr) - set(before.isr))
        if after.leader not in (-1, before.leader) and known.controller_id == broker_id:
            self.unclean_elections += after.leader not in (*before.isr, *before.elr)

    def note_session(self, state: SessionState, now_ms: int) -> None:
        """The session with the coordination store has changed."""
        self.session_state = state
        if state is SessionState.CONNECTED:
            self.store_away_since_ms = None
        elif self.store_away_since_ms is None:
            self.store_away_since_ms = now_ms
        match state:
            case SessionState.CONNECTED:
                self.session_connects += 1
            case SessionState.SUSPENDED:
                self.session_disconnects += 1
            case SessionState.LOST:
                self.session_expires += 1
            case SessionState.OVERDUE:
                pass
