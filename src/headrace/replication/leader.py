"""What a leader knows of its followers, and how far its log is committed (pure).

The high watermark is the least end offset among the in-sync replicas, and never goes back. Integers in, integers out:
this runs for every append and every fetch.
"""


class LeaderState:
    """One partition's leadership, for one leader epoch."""

    __slots__ = ("_broker_id", "_end_offsets", "high_watermark", "isr", "leader_epoch")

    def __init__(
        self, broker_id: int, leader_epoch: int, isr: tuple[int, ...], *, high_watermark: int
    ) -> None:
        assert broker_id in isr, f"broker {broker_id} leads without being in sync: {isr}"
        self._broker_id = broker_id
        self.leader_epoch = leader_epoch
        self.isr = isr
        self.high_watermark = high_watermark
        # A follower counts only from its first fetch in this epoch on: what it had before may be cut.
        self._end_offsets = dict.fromkeys(isr, -1)

    def on_append(self, log_end_offset: int) -> bool:
        """The leader's own log grew. Returns whether the high watermark moved."""
        self._end_offsets[self._broker_id] = log_end_offset
        return self._advance()

    def _advance(self) -> bool:
        committed = min(self._end_offsets[replica] for replica in self.isr)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True
