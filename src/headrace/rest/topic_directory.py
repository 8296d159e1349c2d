"""Which topics exist and how many partitions they have, as far as producing needs to know. A rim module.

A record for a topic that does not exist is refused here: the producer would hold it for half a minute. Brokers may
create the topic when they are asked about it, as they do for Kafka's own producers.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.rest import errors
from headrace.rest.admin.admin_pool import AdminPool
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, refusal_of

_REMEMBERED: Final = 10_000
_MISSING_S: Final = 1.0  # how long a topic counts as missing without being asked about again
_CREATION_S: Final = 2.0  # how long brokers may take to create a topic
_ASK_AGAIN_S: Final = 0.1
_PASSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


class TopicDirectory:
    """Numbers of partitions by topic."""

    def __init__(
        self,
        admins: AdminPool,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._admins = admins
        self._clock = clock
        self._sleep = sleep
        self._known: OrderedDict[str, int] = OrderedDict()
        self._missing: OrderedDict[str, float] = OrderedDict()
        self._asking: dict[str, asyncio.Task[int]] = {}

    def known(self, topic: str) -> int | None:
        """The number of partitions, if it is known without asking."""
        return self._known.get(topic)

    def forget(self, topic: str) -> None:
        """Ask again next time: the topic is not what it was."""
        self._known.pop(topic, None)

    async def find(self, topic: str) -> int:
        """The number of partitions of a topic. Raises RestError where there is no such topic."""
        since = self._missing.get(topic)
        if since is not None and self._clock() - since < _MISSING_S:
            raise errors.unknown_topic_or_partition()
        asking = self._asking.get(topic)
        if asking is None:
            asking = self._asking[topic] = asyncio.create_task(self._ask(topic))
            asking.add_done_callback(lambda _: self._asking.pop(topic, None))
        return await asyncio.shield(asking)

    async def _ask(self, topic: str) -> int:
        deadline = self._clock() + _CREATION_S
        while True:
            found = await self._admins.run(lambda admin: _partitions(admin, topic))
            if isinstance(found, int):
                self._missing.pop(topic, None)
                _remember(self._known, topic, found)
                return found
            if found.error_code not in _PASSING:
                raise errors.of_kafka(found.error_code, found.text)
            if self._clock() + _ASK_AGAIN_S >= deadline:
                _remember(self._missing, topic, self._clock())
                raise errors.of_kafka(found.error_code, found.text)
            await self._sleep(_ASK_AGAIN_S)


def _partitions(admin: Admin, topic: str) -> int | Refusal:
    [found] = admin.metadata([topic], create_missing=True).topics
    refusal = refusal_of(found.error_code)
    if refusal is not None:
        return refusal
    return len(found.partitions)


def _remember(
    entries: OrderedDict[str, int] | OrderedDict[str, float], topic: str, value: int | float
) -> None:
    entries[topic] = value  # type: ignore[assignment]
    entries.move_to_end(topic)
    if len(entries) > _REMEMBERED:
        entries.popitem(last=False)
