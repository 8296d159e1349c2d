"""`storage`: directories that are prepared before a broker's first start."""

from pathlib import Path

import pytest

from tests.programs.conftest import command, parsed, run_command
from tests.support.headrace_process import HeadraceProcess
from tests.support.kafka_tools import Output, run

ALREADY = (
    "Log directory {} is already formatted."
    " Use --ignore-formatted to ignore this directory and format the others."
)


def storage(*arguments: str) -> Output:
    return run_command(command("storage", *arguments))


@pytest.fixture
def settings(tmp_path: Path) -> str:
    """A file as Kafka's own tool would take it, too."""
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.quorum.voters=7@localhost:9093\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return str(path)


def test_an_id_is_made_up() -> None:
    ids = {storage("random-uuid").stdout for _ in range(2)}
    assert len(ids) == 2
    assert {len(each) for each in ids} == {23}


def test_directories_are_formatted_once(settings: str, tmp_path: Path) -> None:
    output = storage("format", "--standalone", "-t", "the-cluster", "-c", settings)
    assert output.stdout == (
        f"Formatting {tmp_path}/a with metadata.version 4.3-IV0.\n"
        f"Formatting {tmp_path}/b with metadata.version 4.3-IV0.\n"
    )
    again = storage("format", "-t", "other", "-c", settings)
    assert again.exit_code == 1
    assert ALREADY.format(f"{tmp_path}/a") in again.stderr
    ignoring = storage("format", "-t", "other", "-c", settings, "--ignore-formatted")
    assert ignoring.stdout == "All of the log directories are already formatted.\n"
    told = parsed(storage("info", "-c", settings, "--output", "json"))
    assert told["metadata"]["cluster.id"] == "the-cluster"
    assert told["metadata"]["node.id"] == "7"
    assert told["problems"] == []


def test_what_is_missing_is_told_as_kafka_tells_it(settings: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    ours, theirs = (
        storage("info", "-c", settings),
        run("storage", "info", "-c", settings, succeed=False),
    )
    assert (ours.exit_code, ours.stdout) == (theirs.exit_code, theirs.stdout)


def test_what_is_there_is_told_as_kafka_tells_it(settings: str) -> None:
    storage("format", "-t", "the-cluster", "-c", settings)
    ours, theirs = (
        storage("info", "-c", settings),
        run("storage", "info", "-c", settings, succeed=False),
    )
    assert (ours.exit_code, ours.stdout) == (theirs.exit_code, theirs.stdout)


def test_a_formatted_broker_needs_no_zookeeper(tmp_path: Path) -> None:
    nobody = {"zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": "500"}
    broker = HeadraceProcess(tmp_path, properties=nobody)
    file = str(tmp_path / "server.properties")
    assert storage("format", "-t", "the-cluster", "-c", file).exit_code == 0
    with broker:
        told = run_command(
            command("cluster", "cluster-id", "--bootstrap-server", f"127.0.0.1:{broker.port}")
        )
        assert told.stdout == "Cluster ID: the-cluster\n"
        assert "zookeeper.connect is not used" in broker.log_tail()


def test_recovering_the_store_has_to_be_confirmed(settings: str, tmp_path: Path) -> None:
    """A broker of a larger cluster whose settings lack `zookeeper.connect` would become a second cluster."""
    store = tmp_path / "a" / "coordination.sqlite"
    nameless = storage("recover", "-c", settings, "--without-zookeeper")
    assert (nameless.exit_code, nameless.stdout) == (1, "")
    assert "no meta.properties names a cluster" in nameless.stderr

    assert storage("format", "-t", "the-cluster", "-c", settings).exit_code == 0
    needless = storage("recover", "-c", settings, "--without-zookeeper")
    assert needless.exit_code == 1
    assert f"{store} is there" in needless.stderr

    for path in store.parent.glob(f"{store.name}*"):
        path.unlink()
    before = names_below(tmp_path)
    unsure = storage("recover", "-c", settings)
    assert (unsure.exit_code, unsure.stdout) == (1, "")
    assert "it is not sure that the cluster the-cluster was this broker alone" in unsure.stderr
    assert "add --without-zookeeper" in unsure.stderr
    assert names_below(tmp_path) == before

    with_zookeeper = tmp_path / "with-zookeeper.properties"
    with_zookeeper.write_text(
        f"broker.id=7\nzookeeper.connect=localhost:1\nlog.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    before = names_below(tmp_path)
    of_many = storage("recover", "-c", str(with_zookeeper), "--without-zookeeper")
    assert (of_many.exit_code, of_many.stdout) == (1, "")
    assert "restore ZooKeeper from a backup" in of_many.stderr
    assert names_below(tmp_path) == before

    sure = storage("recover", "-c", settings, "--without-zookeeper")
    assert sure.exit_code == 0, sure.stderr
    assert "Recovered 0 topics of the cluster the-cluster." in sure.stdout
    assert store.exists()


def names_below(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))
