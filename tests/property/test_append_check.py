"""What `is_plain` lets pass at one look, the checks point by point let pass too; and most batches are plain."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.log.append_check import check_batch, check_client_batch, is_plain, needs_opening
from headrace.log.log_config import LogConfig
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.records.batch_view import read_header, renew_crc
from headrace.wire.refusal import Refusal

NOW_MS = 1_700_000_000_000

configs = st.builds(
    LogConfig,
    max_message_bytes=st.sampled_from([100, 1024 * 1024]),
    segment_bytes=st.sampled_from([100, 1024 * 1024]),
    cleanup_compact=st.booleans(),
    compression_type=st.sampled_from(["producer", "uncompressed", "lz4"]),
    log_append_time=st.booleans(),
    timestamp_before_max_ms=st.sampled_from([1000, 2**63 - 1]),
    timestamp_after_max_ms=st.sampled_from([0, 3_600_000]),
)
options = st.builds(
    BatchOptions,
    codec=st.integers(0, 4),
    producer_id=st.sampled_from([-1, 7]),
    base_sequence=st.sampled_from([-1, 0, 5]),
    transactional=st.booleans(),
    control=st.booleans(),
)


@given(
    config=configs,
    option=options,
    count=st.integers(1, 5),
    offset=st.sampled_from([0, 0, 3]),
    timestamp=st.sampled_from([-1, NOW_MS, NOW_MS + 10, NOW_MS + 10**9]),
    flipped=st.none() | st.tuples(st.integers(8, 60), st.integers(0, 7)),
    has_right_crc=st.booleans(),
)
def test_what_is_plain_would_pass_every_check(
    config: LogConfig,
    option: BatchOptions,
    count: int,
    offset: int,
    timestamp: int,
    flipped: tuple[int, int] | None,
    has_right_crc: bool,
) -> None:
    records = [Record(offset + n, timestamp, b"key", b"value", ()) for n in range(count)]
    batch = build_batch(records, option)
    if flipped is not None:
        at, bit = flipped
        batch[at] ^= 1 << bit
        if has_right_crc:
            renew_crc(batch)
    header = read_header(batch)
    if not is_plain(batch, header, config, NOW_MS):
        return
    assert check_batch(batch, config) == header
    assert check_client_batch(header, config) is None
    assert not needs_opening(header, config, NOW_MS)
    assert not isinstance(check_batch(batch, config), Refusal)


@given(codec=st.integers(0, 4), count=st.integers(1, 5))
def test_what_a_producer_sends_is_plain(codec: int, count: int) -> None:
    records = [Record(n, NOW_MS, b"key", b"value", ()) for n in range(count)]
    batch = build_batch(records, BatchOptions(codec=codec, producer_id=7, base_sequence=0))
    assert is_plain(memoryview(batch), read_header(batch), LogConfig(), NOW_MS)
