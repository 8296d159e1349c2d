"""The lines of the perf tests, and keeping to a rate."""

import math
from datetime import UTC, datetime

import pytest

from headrace.cli.perf.latency_stats import SAMPLES, LatencyStats
from headrace.cli.perf.throughput import Throttle
from headrace.cli.tools.consumer_perf_test import Rows, consumer_settings, make_parser

MB = 1024 * 1024


def test_the_line_of_a_window_and_the_total() -> None:
    stats = LatencyStats(started_s=10.0, expected=4)
    for latency_ms in (1.0, 2.0, 3.0, 10.0):
        stats.record(latency_ms, MB)
    assert stats.report(12.0) == (
        "4 records sent, 2.0 records/sec (2.00 MB/sec), 4.0 ms avg latency, 10.0 ms max latency."
    )
    assert stats.report(13.0).startswith("0 records sent, 0.0 records/sec (0.00 MB/sec)")
    assert stats.total(14.0) == (
        "4 records sent, 1.000000 records/sec (1.00 MB/sec), 4.00 ms avg latency,"
        " 10.00 ms max latency, 3 ms 50th, 10 ms 95th, 10 ms 99th, 10 ms 99.9th."
    )


def test_nothing_was_sent() -> None:
    assert LatencyStats(0.0, 0).total(1.0).startswith("0 records sent, 0.000000 records/sec")


def test_long_runs_keep_only_a_sample() -> None:
    stats = LatencyStats(0.0, 3 * SAMPLES)
    for number in range(3000):
        stats.record(float(number), 1)
    assert stats.percentiles()[0] == 1500.0
    assert stats.count == 3000


def test_a_steady_state_has_its_own_title() -> None:
    stats = LatencyStats(0.0, 1, " steady state")
    stats.record(1.0, 1)
    assert stats.total(1.0).startswith("1 steady state records sent, ")


def test_keeping_to_a_rate() -> None:
    throttle = Throttle(10, started_s=100.0)
    assert math.isclose(throttle.wait_s(sent=1, now_s=100.0), 0.1)
    assert math.isclose(throttle.wait_s(sent=20, now_s=101.5), 0.5)
    assert throttle.wait_s(sent=20, now_s=150.0) == 0.0
    assert Throttle(-1, 0.0).wait_s(1000, 0.0) == 0.0
    assert Throttle(0, 0.0).wait_s(0, 0.0) == math.inf


def test_rows_of_the_consumer() -> None:
    rows = Rows("yyyy-MM-dd HH:mm:ss:SSS")
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
    assert rows.moment(moment) == "2026-01-02 03:04:05:678"
    assert rows.numbers(1000, 2 * MB, 2.0, 1.0) == (
        "2.0000, 1.0000, 1000, 500.0000, 1000, 1000, 2.0000, 1000.0000"
    )
    later = rows.numbers(1500, 3 * MB, 1.0, 1.0, before=(1000, 2 * MB, 1.0))
    assert later == "3.0000, 1.0000, 1500, 500.0000, 0, 1000, 1.0000, 500.0000"


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        ([], "read_uncommitted"),
        (["--isolation-level", "read_committed"], "read_committed"),
        (["--command-property", "isolation.level=read_committed"], "read_committed"),
    ],
)
def test_the_isolation_level_of_a_measured_consumer(arguments: list[str], level: str) -> None:
    words = ["--bootstrap-server", "b:1", "--topic", "t", "--num-records", "1", *arguments]
    options = make_parser().parse_args(words)
    assert consumer_settings(options)["isolation.level"] == level
