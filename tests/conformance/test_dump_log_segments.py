"""Kafka's own dump tool reads every file that Headrace's log writes, and finds nothing to object to."""

import re
from pathlib import Path

import pytest

from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType
from tests.conformance.our_log import OurLog, write_ours
from tests.support import kafka_tools

RECORD = re.compile(
    r"^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) .*", re.MULTILINE
)
BATCH = re.compile(r"^baseOffset: .*", re.MULTILINE)
MARKER = re.compile(
    r"^\| offset: (\d+) .*endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: 3", re.MULTILINE
)
# The tool begins to count at -1 in every segment, also in those that begin later.
FALSE_ALARM = re.compile(r"Non-consecutive offsets in \S+\n\s*-1 is followed by \d+\n")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, OurLog]:
    """One log for the tests of indexes and snapshots."""
    directory = tmp_path_factory.mktemp("dump") / "ours-0"
    ours = write_ours(directory, Codec.NONE)
    ours.log.close(ours.records[-1].timestamp)
    return directory, ours


def dump(directory: Path, suffix: str, *options: str) -> str:
    """What the tool prints of all files with this suffix; fails if it objects to anything."""
    files = sorted(directory.glob(f"*.{suffix}"))
    printed, objections = dump_files(files, *options)
    assert not objections
    return printed


def dump_files(files: list[Path], *options: str) -> tuple[str, str]:
    """What the tool prints, and what it objects to."""
    assert files
    output = kafka_tools.run("dump-log", "--files", ",".join(map(str, files)), *options)
    objections = [FALSE_ALARM.sub("", output.stderr).strip()]
    objections += re.findall(r".*invalid bytes.*|.*isvalid: false.*", output.stdout)
    return output.stdout, "\n".join(objections)


@pytest.mark.parametrize(
    ("suffix", "position", "objection"),
    [
        ("log", 600, "isvalid: false"),
        ("index", 11, "Index offset"),
        ("timeindex", 19, "Index timestamp"),
        ("snapshot", 3, "Snapshot is corrupt"),
    ],
)
def test_a_flipped_bit_would_be_noticed(
    tmp_path: Path, suffix: str, position: int, objection: str
) -> None:
    ours = write_ours(tmp_path / "ours-0", Codec.NONE)
    ours.log.close(ours.records[-1].timestamp)
    damaged = min((tmp_path / "ours-0").glob(f"*.{suffix}"))
    content = bytearray(damaged.read_bytes())
    content[position] ^= 4
    damaged.write_bytes(content)
    assert objection in dump_files([damaged], "--deep-iteration")[1]


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.config_name)
def test_every_batch_and_record_is_read(tmp_path: Path, codec: Codec) -> None:
    ours = write_ours(tmp_path / "ours-0", codec)
    ours.log.close(ours.records[-1].timestamp)
    printed = dump(tmp_path / "ours-0", "log", "--deep-iteration", "--print-data-log")
    data = [found for found in RECORD.finditer(printed) if "endTxnMarker" not in found[0]]
    sizes = [tuple(map(int, found.groups())) for found in data]
    assert sizes == [
        (record.offset, record.timestamp, _size(record.key), _size(record.value))
        for record in ours.records
    ]
    for found, record in zip(data, ours.records, strict=True):
        headers = ",".join(name for name, _ in record.headers)
        assert f"headerKeys: [{headers}] key: {(record.key or b'').decode()}" in found[0]
    assert [
        (int(found[1]), ControlType[found[2]]) for found in MARKER.finditer(printed)
    ] == ours.markers
    batches = BATCH.findall(printed)
    assert all("magic: 2" in batch and batch.endswith("isvalid: true") for batch in batches)
    # Control batches are never compressed.
    expected = {f"compresscodec: {codec.name.lower()}", "compresscodec: none"}
    assert {batch.split(" crc")[0].rpartition("magic: 2 ")[2] for batch in batches} == expected


def _size(field: bytes | None) -> int:
    return -1 if field is None else len(field)


@pytest.mark.parametrize(
    "option", ["--index-sanity-check", "--verify-index-only", "--deep-iteration"]
)
def test_offset_indexes_are_sound(written: tuple[Path, OurLog], option: str) -> None:
    directory, _ = written
    printed = dump(directory, "index", option)
    count = len(list(directory.glob("*.index")))
    assert printed.count("Dumping ") == count
    if option == "--index-sanity-check":
        assert printed.count("passed sanity check.") == count
    if option == "--deep-iteration":
        entries = sum(path.stat().st_size // 8 for path in directory.glob("*.index"))
        assert len(re.findall(r"^offset: \d+ position: \d+$", printed, re.MULTILINE)) == entries
        assert entries > count


@pytest.mark.parametrize(
    "option", ["--index-sanity-check", "--verify-index-only", "--deep-iteration"]
)
def test_time_indexes_are_sound(written: tuple[Path, OurLog], option: str) -> None:
    directory, _ = written
    printed = dump(directory, "timeindex", option)
    count = len(list(directory.glob("*.timeindex")))
    assert printed.count("Dumping ") == count
    if option == "--index-sanity-check":
        assert printed.count("passed sanity check.") == count
    if option == "--deep-iteration":
        entries = sum(path.stat().st_size // 12 for path in directory.glob("*.timeindex"))
        assert len(re.findall(r"^timestamp: \d+ offset: \d+$", printed, re.MULTILINE)) == entries
        assert entries > count


def test_aborted_transactions_are_listed(written: tuple[Path, OurLog]) -> None:
    directory, ours = written
    printed = dump(directory, "txnindex")
    aborted = [offset for offset, control_type in ours.markers if control_type is ControlType.ABORT]
    listed = re.findall(
        r"^version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)$",
        printed,
        re.MULTILINE,
    )
    assert [(int(producer_id), int(last)) for producer_id, _, last, _ in listed] == [
        (2002, aborted[0]),
        (2003, aborted[1]),
    ]
    # 2003 was the only open transaction when it ended, so everything up to its marker became stable.
    first_of_2003, last_stable = int(listed[1][1]), int(listed[1][3])
    assert first_of_2003 == aborted[0] + 1
    assert last_stable == aborted[1] + 1


def test_producers_are_in_the_snapshots(written: tuple[Path, OurLog]) -> None:
    directory, _ = written
    printed = dump(directory, "snapshot")
    last = printed.rpartition("Dumping ")[2]
    listed = re.findall(
        r"^producerId: (\d+) producerEpoch: 0 coordinatorEpoch: (-?\d+) currentTxnFirstOffset: OptionalLong.empty "
        r".*lastSequence: (-?\d+) .*",
        last,
        re.MULTILINE,
    )
    assert sorted(listed) == [
        ("1001", "-1", "23"),
        ("2001", "3", "19"),
        ("2002", "3", "19"),
        ("2003", "3", "95"),
    ]
