"""Appends the batches of Produce requests to partitions. Every Produce ends here, that of the fast path included.

Owns what is counted for a topic. Leaves the answers to `apis.produce` and to the fast path.
"""

from collections.abc import Sequence

from headrace.broker.net.refused_batches import RefusedBatches, TopicKey
from headrace.broker.telemetry.traffic import TopicTraffic
from headrace.log.append_check import Opened
from headrace.log.append_result import Appended
from headrace.log.producers.producer_state import Verification
from headrace.records.batch_view import BatchHeader
from headrace.replication.partition import NOT_LEADER, Partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal


def append_batches(
    partition: Partition,
    batches: Sequence[memoryview],
    headers: Sequence[BatchHeader],
    acks: int,
    now_ms: int,
    counters: TopicTraffic,
    opened: Opened | None = None,
    verified: Verification | None = None,
) -> Appended | Refusal:
    """Append the first batches of a list, and count them for their topic; see `Partition.append`. A refusal is the caller's to count."""
    appended = partition.append(
        batches, headers, acks=acks, now_ms=now_ms, opened=opened, verified=verified
    )
    if type(appended) is Appended:
        base_offset, last_offset, _, is_duplicate, count = appended
        counters.produce_requests += count
        if not is_duplicate:
            counters.bytes_in += len(batches[0]) if count == 1 else sum(map(len, batches[:count]))
            counters.messages_in += last_offset - base_offset + 1
    return appended


def note_unacknowledged(
    error_code: ErrorCode,
    header: BatchHeader,
    topic: TopicKey,
    index: int,
    refused_batches: RefusedBatches,
) -> None:
    """A batch was appended and is not acknowledged: its producer will send it again, with those behind it."""
    if error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        refused_batches.add(topic, index, header, NOT_LEADER)
