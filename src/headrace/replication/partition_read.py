"""What a fetch of one partition asks and what it yields."""

from typing import NamedTuple

from headrace.log.files.file_slice import FileSlice
from headrace.log.leader_epochs import EpochEnd
from headrace.log.segments.txn_index import AbortedTxn


class PartitionRead(NamedTuple):
    """What a fetch of one partition yields."""

    records: FileSlice
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[AbortedTxn] | None = None
    diverging: EpochEnd | None = None


class FollowerFetch(NamedTuple):
    """A follower's fetch of one partition."""

    replica_id: int
    broker_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    current_leader_epoch: int
    log_start_offset: int = -1
