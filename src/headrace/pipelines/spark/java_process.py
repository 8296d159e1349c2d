"""The Java process of Spark, started here and not by PySpark, so that it ends with this process at whatever moment that ends.

PySpark removes the directory in which Java is to leave its address as soon as waiting for it is interrupted. A Java that is still
starting then loses its main thread, and with it the one that would notice that Python has gone: it stays for ever.

Owns that process. PySpark connects to it by the two environment variables that it has for a Java that runs already.
"""

import os
import shlex
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headrace.tied_process import TiedProcess

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 (a name)
_LOOK_AGAIN_S: Final = 0.02

# The one that every session of this process uses, as with PySpark itself. Whoever lets go of it ends it.
_running: TiedProcess | None = None


class JavaNotStarted(Exception):
    """Java ended before it told its address; what it said is on its standard error."""


@contextmanager
def java_for_spark(settings: Mapping[str, str]) -> Iterator[None]:
    """PySpark finds a Java for its first session in here. `settings` are those that Java must know when it starts.

    Raises JavaNotStarted. Where there is a Java already, nothing is done.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is not None or _PORT in os.environ:
        yield
        return
    port, secret = _start(settings)
    os.environ |= {_PORT: str(port), _SECRET: secret}
    try:
        yield
    finally:
        del os.environ[_PORT], os.environ[_SECRET]


def _start(settings: Mapping[str, str]) -> tuple[int, str]:
    """Start Java, wait until it listens. Returns its port and the secret to show there."""
    global _running  # noqa: PLW0603 (one per process, as PySpark has it)
    with tempfile.TemporaryDirectory(prefix="headrace-java-") as directory:
        address = Path(directory) / "address"
        java = TiedProcess(
            _command(settings),
            stdin=subprocess.PIPE,  # at its end Java goes in good order
            env={
                **os.environ,
                "SPARK_CONNECT_MODE": "0",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address),
            },
        )
        try:
            content = _wait_for(address, java)
        except BaseException:
            java.kill()
            java.wait()
            raise
    _running = java
    port, length = struct.unpack_from(">ii", content)
    return port, content[8 : 8 + length].decode()


def _wait_for(address: Path, java: TiedProcess) -> bytes:
    while not address.exists():  # Java writes it aside and renames it
        if java.poll() is not None:
            raise JavaNotStarted(f"Java ended with {java.returncode}")
        time.sleep(_LOOK_AGAIN_S)
    return address.read_bytes()


def _command(settings: Mapping[str, str]) -> list[str]:
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    words = [str(home / "bin" / "spark-submit")]
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    return words + shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
