import json
from xml.etree import ElementTree

import pytest

from bench.beside_kafka.picture import picture
from bench.beside_kafka.results import Ratio, Results
from bench.beside_kafka.table import as_json, table
from bench.beside_kafka.targets import TARGETS, target_of

CPU = "broker CPU s/GB"


@pytest.mark.parametrize(
    ("case", "metric", "text"),
    [
        ("produce librdkafka 100 B lz4 acks=all", "MB/s", "≥ 1"),
        ("produce perf-test 1 KiB none acks=1", "MB/s", "≥ 1"),
        ("produce librdkafka 100 B none acks=1", CPU, "≤ 0.5"),
        ("produce librdkafka 1 KiB none acks=1", CPU, "≤ 0.25"),
        ("produce librdkafka 10 KiB none acks=1", CPU, "≤ 0.25"),
        ("requests 1 connection", "requests/s", "≥ 4"),
        ("requests 1 connection, librdkafka", "requests/s", "≥ 4"),
        ("requests 16 connections", "requests/s", "≥ 1.5"),
        ("requests synchronous acks=all", "p50 ms", "≤ 0.6"),
        ("consume 3 consumers", CPU, "≤ 1.2"),
        ("latency 50 %", "p50 ms", "≤ 0.7"),
        ("cluster produce 1 KiB acks=all", CPU, "≤ 0.5"),
        ("partitions 1000", "MB/s", "≥ 1"),
        ("life start", "s", "≤ 0.2"),
        ("life after load", "memory MB", "≤ 0.2"),
        ("cluster failover", "s", "≤ 1"),
    ],
)
def test_what_is_asked_of_a_run(case: str, metric: str, text: str) -> None:
    target = target_of(case, metric)
    assert target is not None
    assert target.text == text


def test_nothing_is_asked_of_the_rest() -> None:
    assert target_of("requests 100 connections", "requests/s") is None
    assert target_of("latency 10 %", "p50 ms") is None
    assert target_of("life idle", "resident MB") is None


def ratio(value: float) -> Ratio:
    return Ratio(value=value, lowest=value, highest=value)


def test_a_target_is_judged_in_the_two_digits_that_are_shown() -> None:
    at_least = target_of("consume 1 consumer", "MB/s")
    at_most = target_of("life start", "s")
    assert at_least is not None
    assert at_most is not None
    assert at_least.is_met(ratio(0.996))
    assert not at_least.is_met(ratio(0.99))
    assert at_most.is_met(ratio(0.204))
    assert not at_most.is_met(ratio(0.21))


def half_met() -> Results:
    results = Results()
    for case, ours in (("consume 1 consumer", 200.0), ("consume 3 consumers", 50.0)):
        results.add(case, "headrace", {"MB/s": ours})
        results.add(case, "kafka", {"MB/s": 100.0})
    return results


def test_the_table_says_plainly_what_was_missed() -> None:
    printed = table(half_met())
    one, three = (line for line in printed.splitlines() if line.startswith("consume"))
    assert one.split()[-1] == "met"
    assert three.split()[-1] == "MISSED"
    assert "MISSED in 1 of 2; furthest: consume 3 consumers 0.50" in printed
    assert f"not measured: {len(TARGETS) - 1} of {len(TARGETS)} targets" in printed


def test_the_json_has_every_round_and_verdict() -> None:
    told = json.loads(json.dumps(as_json(half_met())))
    assert [figure["met"] for figure in told["figures"]] == [True, False]
    assert told["figures"][0]["rounds"] == {"headrace": [200.0], "kafka": [100.0]}


def test_the_picture_is_an_svg_with_a_bar_a_figure() -> None:
    root = ElementTree.fromstring(picture(half_met(), "2 cores & more"))
    names = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "consume 1 consumer, MB/s" in names
    assert "2 cores & more" in names
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 1 + 2
