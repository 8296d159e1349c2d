"""How a follower's log meets its leader's (pure): what to fetch next, and where to cut.

A fetch names the follower's end offset and the epoch of its last record. If the leader's history differs there, it
answers where that epoch, or the largest older one it knows, ended; the follower cuts and asks again, until both agree. So every
change of leader epoch is reconciled before anything is appended, and never by high watermark.
"""

from typing import NamedTuple

from headrace.log.leader_epochs import EpochEnd, LeaderEpochs


class NextFetch(NamedTuple):
    """What a follower asks for."""

    offset: int
    last_fetched_epoch: int


def next_fetch(epochs: LeaderEpochs, log_end_offset: int) -> NextFetch:
    """From the end of the log, naming the epoch of the record before it."""
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
    # We have nothing of that epoch: everything after the older one that we do have is doubtful.
    return min(ours.end_offset, log_end_offset)
