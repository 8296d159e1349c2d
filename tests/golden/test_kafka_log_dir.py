"""Headrace's log opens a data directory that Apache Kafka 4.3 wrote, checked in here (see `make_kafka_log_dir.py`)."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conformance.kafka_data import checkpointed
from tests.conformance.our_log import open_ours, read_ours
from tests.golden.make_kafka_log_dir import HERE, as_json

EXPECTED = json.loads((HERE / "expected.json").read_text())


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "after a crash"])
@pytest.mark.parametrize("name", EXPECTED["records"])
def test_every_record_is_read(tmp_path: Path, name: str, clean: bool) -> None:
    copy = shutil.copytree(HERE / name, tmp_path / name)
    log = open_ours(copy, checkpointed(HERE, name, clean=clean))
    assert [as_json(record) for record in read_ours(log)] == EXPECTED["records"][name]
    assert not any(tmp_path.rglob("*.deleted"))
    log.close(0)


def test_aborted_transactions_are_known(tmp_path: Path) -> None:
    name = "transactions-0"
    log = open_ours(
        shutil.copytree(HERE / name, tmp_path / name), checkpointed(HERE, name, clean=True)
    )
    offsets = {record.offset for record in read_ours(log)}
    gone = offsets - set(EXPECTED["committed"])
    aborted = log.aborted_transactions(0, log.log_end_offset)
    assert len(gone) == 18
    assert [len([o for o in gone if t.first_offset <= o <= t.last_offset]) for t in aborted] == [
        6
    ] * 3
