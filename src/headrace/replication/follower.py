"""Reconciles a follower's log with its leader's (pure): the next fetch, the truncation offset, and whether to truncate at all.

A fetch names the follower's end offset and the epoch of its last record. If the leader's history differs there, it
answers where that epoch, or the largest older one it knows, ended; the follower cuts and asks again, until both agree. So every
change of leader epoch is reconciled before anything is appended, and never by high watermark.

A leader that was elected cleanly has everything that is committed, so a cut below the follower's own high watermark has another
cause: an unclean election, or a leader that lost what it had not synced. If the partition's state tells of neither, the state
itself is wrong, as it is after a backup of the coordination store was restored, and the follower keeps its records.
"""

from typing import Final, NamedTuple

from headrace.log.leader_epochs import EpochEnd, LeaderEpochs


class NextFetch(NamedTuple):
    """A follower's position, as its next fetch names it."""

    offset: int
    last_fetched_epoch: int


def next_fetch(epochs: LeaderEpochs, log_end_offset: int) -> NextFetch:
    """Fetch from the end of the log, with the leader epoch of the record before it."""
    return NextFetch(log_end_offset, epochs.epoch_at(log_end_offset - 1))


def truncation_offset(leader: EpochEnd, epochs: LeaderEpochs, log_end_offset: int) -> int:
    """Where to cut, when the leader says that `leader.epoch` ended at `leader.end_offset`."""
    if leader.epoch < 0:
        return min(leader.end_offset, log_end_offset)
    ours = epochs.end_offset_for(leader.epoch, log_end_offset)
    if ours.epoch < 0:
        return min(leader.end_offset, log_end_offset)
    if ours.epoch == leader.epoch:
        return min(leader.end_offset, ours.end_offset, log_end_offset)
    # This log has no record of that epoch, so everything after the newest older epoch is doubtful.
    return min(ours.end_offset, log_end_offset)


class LossyEpochs(NamedTuple):
    """Leader epochs that allow to delete committed records (`controller.values.PartitionState`); -1 for none."""

    unclean: int = -1
    crashed: int = -1


NO_LOSS: Final = LossyEpochs()


def deletes_committed(
    leader: EpochEnd, cut: int, high_watermark: int, *, may_lack_epochs: bool
) -> bool:
    """Whether the leader lacks records below the follower's high watermark, when it asks for this cut.

    A log that was copied from a compacted one lacks the epochs of which no record was left. Then the cut may be lower than what
    the leader lacks, and the follower fetches those records again.
    """
    return (leader.end_offset if may_lack_epochs else cut) < high_watermark


def may_delete_committed(epochs: LeaderEpochs, lossy: LossyEpochs) -> bool:
    """Whether an unclean election came after the follower's last record, or the leader crashed in its epoch or later.

    A leader that crashed has lost what it had not synced: also whole epochs, and the end of those before.
    """
    latest = epochs.latest
    return lossy.unclean > latest or lossy.crashed >= latest


def is_gap(first_offset: int, high_watermark: int) -> bool:
    """Whether a leader that was read from a cut on, and has its first batch there at `first_offset`, has a gap up to what is committed."""
    return first_offset >= high_watermark
