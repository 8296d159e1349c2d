"""Imports are frozen in reused workers of Spark only, and again only where something was imported since."""

import gc
import sys
import types
from collections.abc import Iterator

import pytest

from headrace.pipelines.spark.frozen_imports import freeze_imports


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_nothing_is_frozen_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    freeze_imports()
    assert gc.get_freeze_count() == 0


def test_a_reused_worker_freezes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    monkeypatch.setitem(sys.modules, "imported_before", types.ModuleType("imported_before"))
    freeze_imports()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    gc.unfreeze()
    freeze_imports()
    assert gc.get_freeze_count() == 0  # nothing was imported since
    monkeypatch.setitem(sys.modules, "imported_later", types.ModuleType("imported_later"))
    freeze_imports()
    assert gc.get_freeze_count() > 1000


def test_garbage_is_not_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    gone = []

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            gone.append(True)

    monkeypatch.setitem(sys.modules, "imported_now", types.ModuleType("imported_now"))
    Garbage()
    freeze_imports()
    assert gone
