"""Imported modules of a Python worker of Spark, kept out of its garbage collections.

Spark reuses a worker, which collects all garbage after every task and every call of the planner. With the modules of PySpark and
Arrow loaded, one such collection takes 20 to 50 ms of a core, several times what a small batch takes, and three workers do it for each
batch. Objects that `gc.freeze` has set aside are not looked at. Reference counts still free them.
"""

from __future__ import annotations

import gc
import os
import sys

_frozen_modules = 0


def freeze_imports() -> None:
    """Freeze what is loaded, in a worker that Spark reuses. Cheap where nothing was imported since the last call."""
    global _frozen_modules  # noqa: PLW0603 (one per process, as the collector is)
    if "SPARK_REUSE_WORKER" not in os.environ or len(sys.modules) == _frozen_modules:
        return
    _frozen_modules = len(sys.modules)
    gc.collect()  # garbage that is frozen stays for ever
    gc.freeze()
