"""What `headrace doctor` makes of what it finds."""

from pathlib import Path

import pytest

from headrace.cli.local import doctor_checks
from headrace.cli.local.doctor_checks import (
    check_codecs,
    check_directory,
    check_python,
    judge_file_limit,
    judge_space,
)


def test_this_python_and_its_codecs_will_do() -> None:
    assert check_python().verdict == "ok"
    assert check_codecs().verdict == "ok"


@pytest.mark.parametrize(("limit", "verdict"), [(100, "failed"), (1024, "note"), (65536, "ok")])
def test_few_files_are_remarked_and_too_few_refused(limit: int, verdict: str) -> None:
    found = judge_file_limit(limit)
    assert found.verdict == verdict
    assert bool(found.hint) == (verdict != "ok")


@pytest.mark.parametrize(
    ("free", "verdict"), [(1 << 20, "failed"), (500 << 20, "note"), (5 << 30, "ok")]
)
def test_little_space_is_remarked_and_too_little_refused(free: int, verdict: str) -> None:
    assert judge_space(free).verdict == verdict


def test_a_directory_that_is_not_there_yet_is_judged_by_its_parent(tmp_path: Path) -> None:
    found = check_directory("data", tmp_path / "a" / "b")
    assert found.verdict == "ok"
    assert not (tmp_path / "a").exists()


def test_a_directory_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = check_directory("data", tmp_path / "file")
    assert (found.verdict, "file" in found.text) == ("failed", True)


def test_without_a_wish_a_missing_broker_is_only_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "_accepts", lambda _address: False)
    assert doctor_checks.check_broker(None).verdict == "note"
