"""Tools that look at what is stored: get-offsets, delete-records, log-dirs, dump-log, broker-api-versions, cluster."""

import json
from pathlib import Path

import pytest

from tests.programs.conftest import Headrace, command, parsed, run_command
from tests.support.broker import Broker


@pytest.fixture
def filled(headrace: Headrace, topic: str) -> str:
    """A topic whose partition is the same for all ten records."""
    lines = b"".join(b"same\t%d\n" % n for n in range(10))
    headrace("console-producer", "--topic", topic, "--property", "parse.key=true", stdin=lines)
    return topic


def offsets(headrace: Headrace, topic: str, *arguments: str) -> list[str]:
    found = headrace("get-offsets", "--topic", topic, *arguments).stdout
    return [line.removeprefix(f"{topic}:") for line in found.splitlines()]


def test_offsets(headrace: Headrace, filled: str) -> None:
    latest = offsets(headrace, filled)
    assert sorted(line.split(":")[1] for line in latest) == ["0", "10"]
    assert offsets(headrace, filled, "--time", "-2") == ["0:0", "1:0"]
    full = "0" if "0:10" in latest else "1"
    assert offsets(headrace, filled, "--time", "1") == [f"{full}:0"]
    assert offsets(headrace, filled, "--time", "-1", "--partitions", full) == [f"{full}:10"]
    ranged = headrace("get-offsets", "--topic-partitions", f"{filled}:0-2")
    assert len(ranged.stdout.splitlines()) == 2
    as_json = parsed(headrace("get-offsets", "--topic", filled, "--output", "json"))
    assert {each["offset"] for each in as_json} == {0, 10}


def test_offsets_of_nothing(headrace: Headrace) -> None:
    for arguments, told in (
        (
            ["--topic", "never-made"],
            "Could not match any topic-partitions with the specified filters",
        ),
        (["--time", "soon"], "Malformed time argument soon. Please use -1 or latest / "),
        (
            ["--partitions", "x"],
            "--partitions expects a comma separated list of numeric partition ids",
        ),
    ):
        output = headrace("get-offsets", *arguments, succeed=False)
        assert output.exit_code == 1
        assert output.stderr.startswith(f"Error occurred: {told}")


def test_records_are_deleted(headrace: Headrace, filled: str, tmp_path: Path) -> None:
    full = next(line[0] for line in offsets(headrace, filled) if line.endswith(":10"))
    other = "1" if full == "0" else "0"
    wanted = tmp_path / "offsets.json"
    wanted.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": filled, "partition": int(full), "offset": 7},
                    {"topic": filled, "partition": int(other), "offset": 5},
                ],
            }
        )
    )
    deleted = headrace("delete-records", "--offset-json-file", str(wanted)).stdout.splitlines()
    assert deleted[:2] == [
        "Executing records delete operation",
        "Records delete operation completed:",
    ]
    assert f"partition: {filled}-{full}\tlow_watermark: 7" in deleted
    [refused] = [line for line in deleted if line.startswith(f"partition: {filled}-{other}\t")]
    assert "error: OFFSET_OUT_OF_RANGE" in refused
    assert f"{full}:7" in offsets(headrace, filled, "--time", "earliest")


def test_log_dirs(headrace: Headrace, filled: str, broker: Broker) -> None:
    output = headrace("log-dirs", "--describe", "--topic-list", filled).stdout.splitlines()
    assert output[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    [described] = json.loads(output[2])["brokers"]
    [log_dir] = described["logDirs"]
    assert (log_dir["logDir"], log_dir["error"]) == (str(broker.data_dir), None)
    sizes = [each["size"] for each in log_dir["partitions"]]
    assert sizes[0] == 0 or sizes[1] == 0
    assert sum(sizes) > 0
    unknown = headrace("log-dirs", "--describe", "--broker-list", "1,9", succeed=False)
    assert unknown.exit_code == 1
    assert "do not exist from --broker-list: 9. Current existent brokers: 1" in unknown.stderr


def test_files_of_the_broker_are_dumped(headrace: Headrace, filled: str, broker: Broker) -> None:
    [segment] = [
        path
        for number in (0, 1)
        if (path := broker.data_dir / f"{filled}-{number}" / f"{0:020}.log").stat().st_size
    ]
    dumped = run_command(command("dump-log", "--files", str(segment), "--print-data-log"))
    values = [
        line.rpartition(" payload: ")[2] for line in dumped.stdout.splitlines() if line[0] == "|"
    ]
    assert values == [str(n) for n in range(10)]


def test_api_versions_and_cluster(headrace: Headrace, address: str) -> None:
    shown = headrace("broker-api-versions").stdout.splitlines()
    assert shown[0] == f"{address} (id: 1 rack: null isFenced: false) -> ("
    assert "\tProduce(0): 0 to 13 [usable: 13]," in shown
    assert shown[-1] == ")"
    assert headrace("cluster", "cluster-id").stdout.startswith("Cluster ID: ")
    host, port = address.split(":")
    header, row = headrace("cluster", "list-endpoints").stdout.splitlines()
    assert header.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert row.split() == ["1", host, port, "null", "unfenced", "broker"]
