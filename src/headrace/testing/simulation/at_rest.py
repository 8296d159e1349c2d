"""What must be back to its number when nothing goes on any more: buffers, waiters, tasks, timers, connections, files.

Whatever waits for ever, or was left behind by a fault, shows here. Returns it in words, or None.
"""

import asyncio
from collections import Counter
from typing import Final

from headrace.broker.wiring import BrokerComponents
from headrace.testing.simulation.broker import SimulatedBroker

# Tasks by the name of their coroutine: so many may be there at rest. Those not named: one.
_TASKS: Final = {
    "Housekeeping._repeat": 8,
    "ZooKeeperStore._watch.<locals>.follow": 10,
    "FetchLoop.run": 9,  # one for each other broker
    "Connection._run": 20,  # long polls of followers and of the controller's readers
}
_MOST_TIMERS: Final = 80


def leftover(broker: SimulatedBroker, parts: BrokerComponents) -> str | None:
    """What is left over on one broker."""
    problem = _held_memory(parts) or _waiters(parts) or _tasks(broker) or _timers(broker)
    if problem is None:
        problem = _files(broker)
    return None if problem is None else f"{broker.name}: {problem}"


def _held_memory(parts: BrokerComponents) -> str | None:
    # A long poll holds the bytes of its request.
    busy = sum(1 for connection in parts.connections.open if not connection.is_idle)
    if parts.budget.used_bytes and not busy:
        return f"{parts.budget.used_bytes} bytes of requests are held by nobody"
    return f"{parts.budget.used_bytes} bytes are held" if parts.budget.used_bytes < 0 else None


def _waiters(parts: BrokerComponents) -> str | None:
    # A fetch session outlives its connection until another one needs its place.
    polls = len(parts.connections.open) + len(parts.sessions)
    for partition in parts.partitions:
        if len(partition.committed):
            return f"{partition.topic_partition}: a producer waits, but nothing is to be committed"
        for waiters in (partition.append_waiters, partition.high_watermark_waiters):
            if len(waiters) > polls:
                return f"{partition.topic_partition}: {len(waiters)} wait in {polls} sessions"
    return None


def _tasks(broker: SimulatedBroker) -> str | None:
    assert broker.process is not None
    tasks = asyncio.all_tasks(broker.process.loop)
    names = Counter(getattr(task.get_coro(), "__qualname__", "?") for task in tasks)
    for name, count in sorted(names.items()):
        if count > _TASKS.get(name, 1):
            return f"{count} tasks run {name}"
    return None


def _timers(broker: SimulatedBroker) -> str | None:
    assert broker.process is not None
    timers = broker.process.loop.timers
    return f"{timers} timers are set" if timers > _MOST_TIMERS else None


def _files(broker: SimulatedBroker) -> str | None:
    lost = broker.disk.open_without_name()
    return f"{lost} is open and has no name" if lost is not None else None
