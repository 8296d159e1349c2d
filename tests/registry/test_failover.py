"""Several instances over one topic: kill -9 of the primary under writes loses no registration that was acknowledged."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.registry.registrations import Acknowledged, Writer, check
from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess

ROUNDS = int(os.environ.get("HEADRACE_REGISTRY_KILLS", "3"))
SESSION_MS = "6000"
WRITERS = 3


@pytest.fixture
def instances(broker: HeadraceProcess, tmp_path: Path) -> Iterator[list[RegistryProcess]]:
    """Two instances with a topic and a group of their own."""
    properties = {
        "kafkastore.topic": f"_schemas-{tmp_path.name}",
        "schema.registry.group.id": f"registry-{tmp_path.name}",
        "headrace.session.timeout.ms": SESSION_MS,
    }
    brokers = f"127.0.0.1:{broker.port}"
    with (
        RegistryProcess(tmp_path, brokers, properties=properties) as first,
        RegistryProcess(tmp_path, brokers, properties=properties) as second,
    ):
        yield [first, second]


@pytest.mark.timeout(120 + 60 * ROUNDS)
def test_kills_of_the_primary_lose_nothing(instances: list[RegistryProcess]) -> None:
    instances[0].await_primary()
    instances[0].ask("PUT", "/config", {"compatibility": "NONE"})
    writers = [Writer(number, instances) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(ROUNDS):
            _kill_the_primary(instances, writers)
    finally:
        for writer in writers:
            writer.end()
    acknowledged: Acknowledged = {}
    for writer in writers:
        acknowledged |= writer.acknowledged
    for instance in instances:
        check(instance, acknowledged)


def _kill_the_primary(instances: list[RegistryProcess], writers: list[Writer]) -> None:
    url = _primary_that_writes(instances, writers)
    (killed,) = [each for each in instances if each.url == url]
    (other,) = [each for each in instances if each is not killed]
    killed.kill()
    started = time.monotonic()
    before = sum(len(writer.acknowledged) for writer in writers)
    deadline = started + 45
    while sum(len(writer.acknowledged) for writer in writers) <= before + WRITERS:
        assert time.monotonic() < deadline, other.log_tail()
        time.sleep(0.05)
    assert other.primary() == other.url
    killed.start()
    # An instance that joins does not take over.
    assert killed.primary() in (None, other.url)


def _primary_that_writes(instances: list[RegistryProcess], writers: list[Writer]) -> str:
    before = sum(len(writer.acknowledged) for writer in writers)
    deadline = time.monotonic() + 45
    while time.monotonic() < deadline:
        primaries = {each.primary() for each in instances}
        written = sum(len(writer.acknowledged) for writer in writers) - before
        if len(primaries) == 1 and None not in primaries and written >= 5:
            (url,) = primaries
            assert url is not None
            return url
        time.sleep(0.05)
    raise AssertionError(f"no primary writes: {instances[0].log_tail()}")


def test_a_paused_primary_does_not_write_after_it_was_replaced(
    instances: list[RegistryProcess],
) -> None:
    url = instances[0].await_primary()
    (paused,) = [each for each in instances if each.url == url]
    (other,) = [each for each in instances if each is not paused]
    assert paused.register("p", '"int"')[0] == 200
    paused.pause()
    try:
        other.await_primary(other_than=url)
        assert other.register("p", '"long"')[0] == 200
    finally:
        paused.resume()
    # What the former primary answers now was decided on what the new one has written.
    deadline = time.monotonic() + 60
    while True:
        status, body = paused.register("p", '"double"')
        if status == 200:
            break
        assert status == 500
        assert time.monotonic() < deadline, body
        time.sleep(0.05)
    for instance in instances:
        assert instance.ask("GET", "/subjects/p/versions") == (200, [1, 2, 3])
    assert body["id"] == 3


def test_a_write_through_any_instance_is_readable_there(instances: list[RegistryProcess]) -> None:
    url = instances[0].await_primary()
    (other,) = [each for each in instances if each.url != url]
    other.await_primary()
    for number in range(5):
        schema = {"type": "fixed", "name": f"F{number}", "size": 1}
        status, body = (
            other.register("w/ü", schema, schemaType="AVRO")
            if number == 0
            else (other.register(f"w{number}", schema))
        )
        assert status == 200, body
        assert other.ask("GET", f"/schemas/ids/{body['id']}")[0] == 200
