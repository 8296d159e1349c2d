"""Which topics exist, over a cluster that answers from a script."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import pytest

from headrace.client.admin.admin import Admin
from headrace.rest.admin.admin_pool import AdminPool
from headrace.rest.errors import RestError
from headrace.rest.topic_directory import TopicDirectory
from tests.unit.client.scripted_cluster import ScriptedCluster

T = TypeVar("T")


class Admins:
    """Runs work at once."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self._admin = cluster.admin()
        self.runs = 0

    async def run(self, work: Callable[[Admin], T]) -> T:
        self.runs += 1
        return work(self._admin)


def directory(
    cluster: ScriptedCluster,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> tuple[TopicDirectory, Admins]:
    admins = Admins(cluster)
    return TopicDirectory(cast(AdminPool, admins), clock=clock, sleep=sleep), admins


def test_a_topic_is_asked_for_once() -> None:
    async def story() -> None:
        cluster = ScriptedCluster()
        cluster.leaders["t"] = [1, 2, 1]
        topics, admins = directory(cluster, lambda: 0.0)
        assert topics.known("t") is None
        assert list(await asyncio.gather(topics.find("t"), topics.find("t"))) == [3, 3]
        assert (topics.known("t"), admins.runs) == (3, 1)
        topics.forget("t")
        assert topics.known("t") is None

    asyncio.run(story())


def test_a_topic_that_is_missing_is_asked_for_until_it_may_have_been_created() -> None:
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now > 1.0:
            cluster.leaders["late"] = [1]

    async def story() -> None:
        nonlocal now
        topics, admins = directory(cluster, lambda: now, sleep)
        assert await topics.find("late") == 1
        runs = admins.runs
        with pytest.raises(RestError) as refused:
            await topics.find("missing")
        assert refused.value.code == 40403
        asked = admins.runs
        assert asked - runs > 10
        with pytest.raises(RestError):
            await topics.find("missing")
        assert admins.runs == asked  # remembered for a moment
        now += 2.0
        with pytest.raises(RestError):
            await topics.find("missing")
        assert admins.runs > asked

    cluster = ScriptedCluster()
    asyncio.run(story())
