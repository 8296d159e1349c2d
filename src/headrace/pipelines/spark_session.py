"""Starts Spark for a pipeline or a query: the settings that matter for us, a Java to run on, its noise in a file.

A rim module: it owns the process's environment while Spark starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.errors import HeadraceError
from headrace.pipelines.spark.home import spark_home
from headrace.pipelines.spark.java import java_home
from headrace.pipelines.spark.java_process import java_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTS: Final = "org.apache.spark.sql.execution.streaming.checkpointing"
_STATE: Final = "org.apache.spark.sql.execution.streaming.state"

_ERROR_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

# Measured: together the first two more than halve the time of a small micro-batch.
SETTINGS: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.buffer.size": "1048576",  # bytes per turn between Java and Python
}


class SparkMissing(HeadraceError):
    """PySpark is not installed."""


class SparkNotStarted(HeadraceError):
    """There is no Java, or no master of this name, or a setting that Java or Spark refuses."""


def require_spark() -> None:
    """Raises SparkMissing where the packages that pipelines need are not there."""
    from importlib.util import find_spec

    missing = [name for name in ("pyspark", "pyarrow", "numpy") if find_spec(name) is None]
    if missing:
        raise SparkMissing(f"{', '.join(missing)} not installed: pip install headrace[spark]")


def start_session(
    name: str,
    *,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    log_file: Path | None = None,
    local_checkpoints: bool = True,
) -> SparkSession:
    """A session with `format("headrace")`. What Spark says goes to `log_file`, where one is given. Raises SparkNotStarted."""
    require_spark()
    _prepare_environment()
    from pyspark.sql import SparkSession

    from headrace.pipelines.source import HeadraceDataSource

    chosen = dict(SETTINGS)
    if not local_checkpoints:
        # Its rename is not safe on shared stores.
        del chosen["spark.sql.streaming.checkpointFileManagerClass"]
    if master.startswith("local"):
        chosen["spark.sql.shuffle.partitions"] = str(_cores(master))
    chosen |= settings or {}
    chosen |= {"spark.master": master, "spark.app.name": name}
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    if log_file is not None:
        _log_errors_in(log_file)
    archive = None if master.startswith("local") else _package_for_executors()
    with _noise_in(log_file):
        with _home(master):
            session = _started(builder, chosen, log_file)
        if archive is not None:
            # First: what is registered knows the files that were shipped before.
            session.sparkContext.addPyFile(str(archive))
        session.dataSource.register(HeadraceDataSource)
    _expect_end_of_java(session)
    return session


def _expect_end_of_java(session: SparkSession) -> None:
    """PySpark's server of accumulators prints a traceback when Java closes its connection, which Java does when it stops."""
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    print_traceback = server.handle_error

    def handle_error(request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], EOFError):
            print_traceback(request, client_address)

    server.handle_error = handle_error


@contextmanager
def _home(master: str) -> Iterator[None]:
    """Java looks where Spark is when it starts."""
    home = spark_home(master)
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = home
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _started(
    builder: SparkSession.Builder, settings: Mapping[str, str], log_file: Path | None
) -> SparkSession:
    from headrace.pipelines.spark.errors import why_not_started

    seen_bytes = 0 if log_file is None else log_file.stat().st_size
    try:
        with java_for_spark(settings):
            return builder.getOrCreate()
    except Exception as error:  # Java's errors and Spark's have no class in common
        logged = b"" if log_file is None else log_file.read_bytes()[seen_bytes:]
        reason = why_not_started(str(error), logged.decode(errors="replace"))
        raise SparkNotStarted(f"Spark did not start: {reason}") from error


def make_active(session: SparkSession) -> None:
    """Make this the thread's active session.

    Spark looks for a sink written in Python in the active session of Java's thread, and nowhere else. Each thread of Python has a
    thread of Java to itself, by a connection of its own: a new thread has no active session, and neither has an old one whose
    connection broke and was made anew. Reading is not affected: it makes the reader's session active first.
    """
    session.createDataFrame([], "nothing INT")  # the one public call that does it


def _package_for_executors() -> Path:
    """This package as an archive, until the process ends. Python processes beside the driver find it by their path."""
    import atexit
    import shutil
    import tempfile

    directory = tempfile.mkdtemp(prefix="headrace-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = write_package(Path(directory) / "headrace.zip")
    paths = [str(archive), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    return archive


def write_package(archive: Path) -> Path:
    """This package as an archive that Spark can ship."""
    import zipfile

    package = Path(__file__).resolve().parents[1]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(package.rglob("*.py")):
            target.write(path, Path("headrace") / path.relative_to(package))
    return archive


def _cores(master: str) -> int:
    count = master.partition("[")[2].rstrip("]").partition(",")[0] or "1"
    return int(count) if count.isdecimal() else os.cpu_count() or 1


def _prepare_environment() -> None:
    # Without this Spark takes the first python3 on PATH, which need not have our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # A machine whose name does not resolve must still be able to run local jobs.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home


def _log_errors_in(log_file: Path) -> None:
    """PySpark prints each error as JSON before it raises it, py4j each interrupt with its traces. Whoever catches them says
    it in words: the rest is for the log.
    """
    import logging

    from pyspark.logger import PySparkLogger

    for name in _ERROR_LOGGERS:
        logger = PySparkLogger.getLogger(name)
        logger.handlers.clear()
        logger.addHandler(logging.FileHandler(log_file, delay=True))
    if not logging.root.handlers:  # py4j logs there, and would set up one that prints
        logging.root.addHandler(logging.FileHandler(log_file, delay=True))


@contextmanager
def _noise_in(log_file: Path | None) -> Iterator[None]:
    """Standard output and error of the Java that is started in here go to the file; ours come back afterwards."""
    if log_file is None:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        target = log_file.open("ab")
    except OSError as error:
        raise SparkNotStarted(
            f"Spark's log {log_file} cannot be written: {error.strerror}"
        ) from error
    kept = os.dup(1), os.dup(2)
    with target:
        os.dup2(target.fileno(), 1)
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
