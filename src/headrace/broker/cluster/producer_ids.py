"""Hands out producer ids from blocks that the controller allocates, never one twice."""

import asyncio
from collections.abc import Awaitable, Callable

from headrace.controller.producer_ids import ProducerIdBlock


class ProducerIds:
    """The block of producer ids of this broker."""

    def __init__(self, allocate: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._refilling = asyncio.Lock()

    async def next_id(self) -> int | None:
        """A new producer id; None while the controller cannot allocate a block."""
        if self._next == self._end:
            async with self._refilling:
                if self._next == self._end:
                    block = await self._allocate()
                    if block.error:
                        return None
                    self._next, self._end = block.first, block.first + block.length
        producer_id = self._next
        self._next += 1
        return producer_id
