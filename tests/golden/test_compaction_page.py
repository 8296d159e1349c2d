"""The bytes in docs/formats/compaction.md are those that compaction writes."""

import re
from pathlib import Path

from headrace.log.batch_filter import empty_batch, filter_batch, inflate
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import read_header

PAGE = Path(__file__).parents[2] / "docs" / "formats" / "compaction.md"
TOMBSTONE = Record(8, 1005, b"d", None)
RECORDS = [Record(7, 1000, b"k", b"v1"), TOMBSTONE, Record(9, 1010, b"k", b"v2")]
OPTIONS = BatchOptions(leader_epoch=3, producer_id=9, producer_epoch=0, base_sequence=4)


def test_the_batches_on_the_page() -> None:
    blocks = re.findall(r"(?:^    (?:[0-9a-f]{2} ?)+\n)+", PAGE.read_text(), re.MULTILINE)
    whole, tombstone, empty = map(bytes.fromhex, blocks)
    header = read_header(whole)
    assert build_batch(RECORDS, OPTIONS) == whole
    assert read_batch(whole) == RECORDS
    filtered = filter_batch(
        inflate(whole, header),
        header,
        lambda offset, _: offset == TOMBSTONE.offset,
        new_horizon_ms=86_401_010,
    )
    assert bytes(filtered.batch or b"") == tombstone
    assert read_batch(tombstone) == [TOMBSTONE]
    assert empty_batch(header) == empty
    assert read_batch(empty) == []
