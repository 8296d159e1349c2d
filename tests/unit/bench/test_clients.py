"""What the harness reads from /proc and from Kafka's tool, and the data that it sends."""

import os
import time

import pytest
import zstandard

from bench.beside_kafka.librdkafka import ClientFailed, Messages, Producer
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.perf_test import summary_of
from bench.beside_kafka.process_cost import Meter, cpu_seconds, memory_in

STATUS = """Name:\tpython
VmHWM:\t  300 kB
VmRSS:\t  200 kB
RssAnon:\t  100 kB
RssFile:\t   90 kB
RssShmem:\t   10 kB
Threads:\t1
"""


def test_cpu_time_is_that_of_the_whole_process() -> None:
    before = time.process_time()
    assert before <= cpu_seconds(os.getpid()) <= time.process_time()


def test_memory_in_its_own_is_told_from_mapped_files() -> None:
    found = memory_in(STATUS)
    assert found.anonymous_bytes == 110 * 1024
    assert found.resident_bytes == 200 * 1024
    assert found.peak_resident_bytes == 300 * 1024


def test_a_meter_measures_this_process() -> None:
    with Meter([os.getpid()]) as meter:
        taken = bytearray(b"x") * 64 * 1024 * 1024
    assert meter.peak_resident_bytes > len(taken)
    assert meter.cpu_s >= 0


@pytest.mark.parametrize("size", [100, 1024, 10_240])
def test_payloads_are_distinct_lines_of_one_size_that_compress_like_text(size: int) -> None:
    pool = payloads(size)
    assert {len(payload) for payload in pool} == {size}
    assert len(set(pool)) == len(pool)
    assert not any(b"\n" in payload for payload in pool)
    data = b"".join(pool[: 1_000_000 // size])
    assert 0.1 < len(zstandard.compress(data)) / len(data) < 0.6


def test_messages_go_round_the_payloads() -> None:
    messages = Messages([b"one", b"three"], 5)
    assert messages.bytes_up_to == [0, 3, 8, 11, 16, 19]
    assert len(messages) == 5


def test_a_setting_that_librdkafka_does_not_know_is_told() -> None:
    with pytest.raises(ClientFailed, match=r"no\.such\.setting"):
        Producer({"no.such.setting": "1"})


def test_the_steady_state_is_the_last_summary_of_the_tool() -> None:
    printed = (
        "75000 records sent, 40000.0 records/sec (39.06 MB/sec), 12.1 ms avg latency, 300.00 ms max latency, "
        "5 ms 50th, 50 ms 95th, 90 ms 99th, 99 ms 99.9th.\n"
        "50000 steady state records sent, 61349.7 records/sec (59.91 MB/sec), 3.1 ms avg latency, 30.00 ms max latency, "
        "2 ms 50th, 5 ms 95th, 9 ms 99th, 10 ms 99.9th.\n"
    )
    summary = summary_of(printed)
    assert (summary.records, summary.records_a_second) == (50_000, 61349.7)
    assert (summary.p50_ms, summary.p99_ms) == (2.0, 9.0)


def test_a_tool_that_says_nothing_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no summary"):
        summary_of("Picked up options\n")
