"""The cleaner's process beside a real broker: it does its work, and a broker that is killed takes it along."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from tests.programs.conftest import command, run_command
from tests.support.broker import bootstrap
from tests.support.headrace_process import HeadraceProcess

PATIENCE_S = 60
ALWAYS = {"log.cleaner.backoff.ms": "50", "log.cleaner.min.cleanable.ratio": "0"}
# Slow enough that it is at work for hours.
SLOWLY = {"log.cleaner.io.max.bytes.per.second": "1000"}
RECORDS = 6_000  # of 1 KiB, for some segments of the smallest size that there is


def fill_a_compacted_topic(broker: HeadraceProcess) -> None:
    address = bootstrap(broker)
    created = run_command(
        command(
            *("topics", "--bootstrap-server", address, "--create", "--topic", "latest"),
            *("--config", "cleanup.policy=compact", "--config", "segment.bytes=1048576"),
        )
    )
    assert created.exit_code == 0, created
    producer = Producer({"bootstrap.servers": address})
    for number in range(RECORDS):
        producer.produce("latest", key=b"%d" % (number % 10), value=bytes(1024))
    assert producer.flush(PATIENCE_S) == 0


def cleaners(broker: HeadraceProcess) -> list[psutil.Process]:
    children = psutil.Process(broker.pid).children(recursive=True)
    return [each for each in children if "headrace.broker.upkeep.cleaner_process" in each.cmdline()]


def wait_until(is_so: Callable[[], object], broker: HeadraceProcess) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, broker.log_tail()
        time.sleep(0.02)


def test_it_compacts(tmp_path: Path) -> None:
    with HeadraceProcess(tmp_path, properties=ALWAYS) as broker:
        fill_a_compacted_topic(broker)
        wait_until(lambda: "latest-0 compacted up to" in broker.log_tail(), broker)


def test_it_ends_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    with HeadraceProcess(tmp_path, properties={**ALWAYS, **SLOWLY}) as broker:
        fill_a_compacted_topic(broker)
        wait_until(lambda: cleaners(broker), broker)
        [cleaner] = cleaners(broker)
        broker.kill()
        try:
            cleaner.wait(PATIENCE_S)
        except psutil.TimeoutExpired:
            cleaner.kill()
            pytest.fail("the cleaner goes on without its broker")
