"""The perf tests and the verifiable tools against a broker."""

import json
import re
import signal
import subprocess
from typing import Any

import pytest

from tests.programs.conftest import Headrace, Unique, command
from tests.support.kafka_tools import Output

TOTAL = re.compile(
    r"(\d+)( steady state)? records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency,"
    r" [\d.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)


def events(output: Output | str) -> list[dict[str, Any]]:
    text = output if isinstance(output, str) else output.stdout
    return [json.loads(line) for line in text.splitlines()]


def test_perf_tests(headrace: Headrace, topic: str) -> None:
    produced = headrace(
        *("producer-perf-test", "--topic", topic, "--num-records", "5000"),
        *("--record-size", "100", "--throughput", "-1", "--warmup-records", "1000"),
        *("--producer-props", "acks=1", "linger.ms=1"),
    ).stdout.splitlines()
    found = [TOTAL.fullmatch(line) for line in produced[-2:]]
    assert [match and match.group(1, 2) for match in found] == [
        ("5000", None),
        ("4000", " steady state"),
    ]
    consumed = headrace("consumer-perf-test", "--topic", topic, "--messages", "5000")
    header, row = consumed.stdout.splitlines()
    assert header.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, ")
    assert row.split(", ")[4] == "5000"
    assert row.split(", ")[2] == f"{5000 * 100 / 1024 / 1024:.4f}"


def test_a_perf_test_of_too_few_records(headrace: Headrace, topic: str) -> None:
    consumed = headrace(
        *("consumer-perf-test", "--topic", topic, "--num-records", "5", "--timeout", "500"),
        "--hide-header",
    )
    assert consumed.stdout.startswith(
        "WARNING: Exiting before consuming the expected number of records: timeout (500 ms) exceeded."
    )


@pytest.mark.parametrize(
    "payload", [[], ["--record-size", "1", "--payload-monotonic"], ["--record-size", "0"]]
)
def test_a_perf_test_needs_one_payload(headrace: Headrace, payload: list[str]) -> None:
    output = headrace(
        *("producer-perf-test", "--topic", "t", "--num-records", "1", "--throughput", "-1"),
        *payload,
        succeed=False,
    )
    assert output.exit_code == 1
    assert "--record-size" in output.stderr


def test_what_one_wrote_the_other_reads(
    headrace: Headrace, address: str, topic: str, unique: Unique
) -> None:
    produced = events(
        headrace(
            *("verifiable-producer", "--topic", topic, "--max-messages", "200"),
            *("--value-prefix", "3", "--repeating-keys", "7"),
        )
    )
    assert produced[0]["name"] == "startup_complete"
    assert [event["name"] for event in produced[-2:]] == ["shutdown_complete", "tool_data"]
    assert (produced[-1]["sent"], produced[-1]["acked"]) == (200, 200)
    sent = {
        (each["partition"], each["offset"], each["key"], each["value"])
        for each in produced
        if each["name"] == "producer_send_success"
    }
    assert len(sent) == 200
    assert {value for *_, value in sent} == {f"3.{n}" for n in range(200)}
    consumed = events(
        headrace(
            *("verifiable-consumer", "--topic", topic, "--group-id", unique("verifiable")),
            *("--max-messages", "200", "--verbose"),
        )
    )
    got = {
        (each["partition"], each["offset"], each["key"], each["value"])
        for each in consumed
        if each["name"] == "record_data"
    }
    assert got == sent
    committed: dict[int, int] = {}
    for event in consumed:
        if event["name"] == "offsets_committed":
            assert event["success"] is True
            committed |= {each["partition"]: each["offset"] for each in event["offsets"]}
    assert sum(committed.values()) == 200
    assert consumed[-1]["name"] == "shutdown_complete"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_verifiable_producer_that_is_stopped_accounts_for_everything(
    address: str, topic: str, number: signal.Signals
) -> None:
    words = command(
        *("verifiable-producer", "--bootstrap-server", address, "--topic", topic),
        *("--throughput", "100"),
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        assert tool.stderr is not None
        first = [tool.stdout.readline() for _ in range(5)]
        tool.send_signal(number)
        # Not by `communicate`: it would pass over lines that came together with the first ones.
        rest, err = tool.stdout.read(), tool.stderr.read()
    said = events("".join(first) + rest)
    assert (tool.returncode, err) == (128 + number, "")
    acked = [each for each in said if each["name"] == "producer_send_success"]
    assert said[-1]["sent"] == said[-1]["acked"] == len(acked) > 0
