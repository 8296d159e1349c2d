"""Whole brokers without sockets, threads, real time or chance: everything that they take from outside is replaced."""

import asyncio
import os
import random
import socket
import subprocess
import threading
import time
from typing import Any, NamedTuple

import pytest

from headrace import clock
from headrace.testing.memory_store import MemoryTree
from tests.support.virtual_brokers import (
    Machine,
    VirtualHost,
    create_topic,
    fetch,
    leader_of,
    produce,
    run_in_virtual_time,
)

LONG_S = 900  # housekeeping has its turns, and an idle connection is closed


class Outcome(NamedTuple):
    """What a run left behind."""

    topic_id: object
    values: list[bytes | None]
    files: dict[str, bytes | None]
    virtual_s: float


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual broker that touches the real thing fails its test.

    Only the thread of the test is refused: a broker that another test keeps running in this process needs its clock and sockets.
    """
    thread_of_test = threading.get_ident()

    def refuse(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def guarded(*args: Any, **options: Any) -> Any:
            if threading.get_ident() == thread_of_test:
                raise AssertionError(f"the real {name} is touched")
            return real(*args, **options)

        monkeypatch.setattr(owner, name, guarded)

    refuse(socket.socket, "__init__")
    refuse(socket, "getaddrinfo")
    refuse(socket, "gethostname")
    refuse(threading.Thread, "start")
    refuse(subprocess.Popen, "__init__")
    refuse(os, "urandom")
    refuse(random, "_urandom")
    refuse(random.SystemRandom, "getrandbits")
    refuse(clock, "time_ns")
    refuse(time, "sleep")


async def live_and_die(seed: int) -> Outcome:
    """One broker, twice: the second time it finds what the first one left."""
    machine, topic_id, values = Machine(1, seed, MemoryTree(), VirtualHost()), None, []
    for _ in range(2):
        await machine.start()
        connection = await machine.connect()
        if topic_id is None:
            topic_id = await create_topic(connection, replicas=1)
        assert not await produce(connection, b"one")
        await asyncio.sleep(LONG_S)
        assert not connection.is_open
        connection = await machine.connect()
        assert not await produce(connection, b"two")
        values = await fetch(connection)
        await connection.close()
        await machine.stop()
    return Outcome(topic_id, values, machine.files(), asyncio.get_running_loop().time())


async def replicate(seed: int) -> Outcome:
    """Two brokers; the leader stops, and the follower takes over."""
    tree, network = MemoryTree(), VirtualHost()
    first, second = (Machine(number, seed + number, tree, network) for number in (1, 2))
    await first.start()
    await second.start()
    connection = await first.connect()
    topic_id = await create_topic(connection, replicas=2)
    machines = {first: connection, second: await second.connect()}
    leader = await leader_of(machines, b"one")
    (follower,) = set(machines) - {leader}
    await leader.stop()
    assert await leader_of({follower: machines[follower]}, b"two") is follower
    values = await fetch(machines[follower])
    await follower.stop()
    return Outcome(topic_id, values, follower.files(), asyncio.get_running_loop().time())


def test_the_same_seed_gives_the_same_life() -> None:
    first = run_in_virtual_time(live_and_die(1))
    assert first.values == [b"one", b"two"] * 2
    assert first.virtual_s == pytest.approx(2 * LONG_S, rel=0.01)
    assert run_in_virtual_time(live_and_die(1)) == first
    assert run_in_virtual_time(live_and_die(2)).topic_id != first.topic_id


def test_brokers_find_each_other() -> None:
    first = run_in_virtual_time(replicate(1))
    assert first.values == [b"one", b"two"]
    assert run_in_virtual_time(replicate(1)) == first
