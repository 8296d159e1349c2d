"""`dump-log` on the files of a real Kafka, and on damaged copies of them."""

import shutil
from pathlib import Path

import pytest

from headrace.cli.tools import dump_log

SAMPLES = Path(__file__).parents[3] / "golden" / "kafka_log_dir"
SEGMENT = "00000000000000000000.log"


def dumped(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[str]:
    assert dump_log.run(["--files", str(path), *options]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"Dumping {path}"
    return lines


def test_batches_and_records_of_a_transaction(capsys: pytest.CaptureFixture[str]) -> None:
    lines = dumped(capsys, SAMPLES / "transactions-0" / SEGMENT, "--deep-iteration")
    assert lines[0] == "Log starting offset: 0"
    assert lines[1].startswith("baseOffset: 0 lastOffset: ")
    assert all(line.endswith("isvalid: true") for line in lines if line.startswith("baseOffset"))
    markers = [line for line in lines if "endTxnMarker" in line]
    assert markers[0].endswith(("COMMIT coordinatorEpoch: 0", "ABORT coordinatorEpoch: 0"))


@pytest.mark.parametrize(
    ("number", "codec"), list(enumerate(["none", "gzip", "snappy", "lz4", "zstd"]))
)
def test_every_codec_is_opened(capsys: pytest.CaptureFixture[str], number: int, codec: str) -> None:
    lines = dumped(capsys, SAMPLES / f"codecs-{number}" / SEGMENT, "--print-data-log")
    assert any(f"compresscodec: {codec} " in line for line in lines)
    assert any(" payload: " in line for line in lines)


def test_indexes_and_snapshots(capsys: pytest.CaptureFixture[str]) -> None:
    directory = SAMPLES / "transactions-0"
    aborted = dumped(capsys, directory / "00000000000000000000.txnindex")
    assert all(line.startswith("version: 0 producerId: ") for line in aborted)
    assert aborted
    times = dumped(capsys, directory / "00000000000000000000.timeindex")
    assert all(line.startswith("timestamp: ") for line in times)
    producers = dumped(capsys, directory / "00000000000000000084.snapshot")
    assert producers[0].startswith("producerId: 1 producerEpoch: 0 coordinatorEpoch: 0 ")
    offsets = dumped(capsys, directory / "00000000000000000000.index")
    assert offsets == ["offset: 67 position: 4136"]
    empty = SAMPLES / "idempotent-0" / "00000000000000000000.index"
    assert dumped(capsys, empty) == [f"{empty} is empty."]


def test_a_torn_end_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    content = (SAMPLES / "idempotent-0" / SEGMENT).read_bytes()
    (tmp_path / SEGMENT).write_bytes(content + content[:70])
    lines = dumped(capsys, tmp_path / SEGMENT)
    assert lines[-1] == f"Found 70 invalid bytes at the end of {SEGMENT}"


def test_a_flipped_bit_makes_a_batch_invalid(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    content = bytearray((SAMPLES / "idempotent-0" / SEGMENT).read_bytes())
    content[-1] ^= 1
    (tmp_path / SEGMENT).write_bytes(content)
    assert dumped(capsys, tmp_path / SEGMENT)[-1].endswith("isvalid: false")


def test_an_index_that_does_not_fit_its_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copy(SAMPLES / "idempotent-0" / SEGMENT, tmp_path)
    index = tmp_path / "00000000000000000000.index"
    index.write_bytes(bytes.fromhex("0000000700000000"))
    assert dump_log.run(["--files", str(index)]) == 0
    out, err = capsys.readouterr()
    assert "offset: 7 position: 0" in out
    assert err.splitlines() == [f"Mismatches in :{index}", "  Index offset: 7, log offset: 19"]


def test_unknown_files_and_missing_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    assert dump_log.run(["--files", str(tmp_path / "notes.txt")]) == 0
    assert "Ignoring unknown file" in capsys.readouterr().err
    assert dump_log.run(["--files", str(tmp_path / SEGMENT)]) == 1
    assert f"cannot read {tmp_path / SEGMENT}" in capsys.readouterr().err
