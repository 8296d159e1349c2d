"""`headrace pipeline …` as a user runs it: in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.spark_topics import Topics

# A test is over before Java's second compiler has earned what it costs.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = (
    *("--master", "local[2]"),
    *("--conf", "spark.driver.memory=512m"),
    *("--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"),
    *("--conf", "spark.sql.shuffle.partitions=1"),
    *("--conf", "spark.ui.enabled=false"),
)
COMMAND = (sys.executable, "-m", "headrace.cli.main")
PATIENCE_S = 400


def call(*arguments: str, state: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**os.environ, "HEADRACE_STATE_DIR": str(state), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def start(
    path: Path, topics: Topics, state: Path, *more: str, **environment: str
) -> subprocess.Popen[str]:
    """Start a pipeline in a process group of its own, so that `kill` reaches Spark's Java as well."""
    arguments = ["pipeline", "run", str(path), "--bootstrap-server", topics.bootstrap_servers]
    return subprocess.Popen(
        [*COMMAND, *arguments, *QUICK, *more],
        env={**os.environ, "HEADRACE_STATE_DIR": str(state), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[Any]) -> None:
    """kill -9 for the driver and everything it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
