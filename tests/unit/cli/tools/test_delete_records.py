"""The file that says which records to delete."""

from pathlib import Path

import pytest

from headrace.cli.shell.command_line import Failure
from headrace.cli.tools.delete_records import read_offsets
from headrace.ids import TopicPartition


def test_partitions_and_offsets(tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text('{"partitions": [{"topic": "t", "partition": 1, "offset": -1}], "version": 1}')
    assert read_offsets(str(file)) == {TopicPartition("t", 1): -1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not a valid JSON"),
        ("[]", "does not say which records"),
        ('{"partitions": [{"topic": "t"}]}', "does not say which records"),
        ('{"partitions": [], "version": 2}', "Not supported version field value 2"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "offset": 1},'
            ' {"topic": "t", "partition": 0, "offset": 2}]}',
            "duplicate topic partitions: t-0",
        ),
    ],
)
def test_files_that_make_no_sense(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(text)
    with pytest.raises(Failure, match=told):
        read_offsets(str(file))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot read"):
        read_offsets(str(tmp_path / "none.json"))
