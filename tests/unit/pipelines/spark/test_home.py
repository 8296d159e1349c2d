"""Spark's Python processes import the installed PySpark, where it is ours to say."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from headrace.pipelines.spark.home import linked_home, spark_home


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_it_has_everything_but_the_archive() -> None:
    found = spark_home("local[2]")
    assert found is not None
    home = Path(found)
    assert (home / "bin" / "spark-submit").is_file()
    assert list((home / "jars").glob("spark-core*.jar"))
    assert not (home / "python").exists()
    assert spark_home("local[2]") == found


@pytest.mark.parametrize(
    ("name", "value"), [("SPARK_HOME", "/opt/spark"), ("PYSPARK_PYTHON", "/usr/bin/python4")]
)
def test_what_others_said_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert spark_home("local[*]") is None


def test_this_python_by_its_name_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert spark_home("local") is not None
    assert spark_home("spark://somewhere:7077") is None


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for part in ("bin", "jars", "python"):
        (tmp_path / "package" / part).mkdir(parents=True)
    return tmp_path / "package"


def test_half_a_home_is_none(package: Path, tmp_path: Path) -> None:
    homes = tmp_path / "homes"
    home = linked_home(package, homes)
    assert sorted(each.name for each in home.iterdir()) == ["bin", "jars"]
    (home / "jars").unlink()
    with pytest.raises(OSError, match="not empty"):
        linked_home(package, homes)
    assert list(homes.iterdir()) == [home], "nothing is left of the attempt"
    (home / "bin").unlink()
    assert (linked_home(package, homes) / "jars").is_dir()
