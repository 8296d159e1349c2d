"""Group ids of a request that may name very many, some at a time: other connections are served in between."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final

_AT_ONCE: Final = 50


async def portions(group_ids: Sequence[str]) -> AsyncIterator[list[str]]:
    """The ids in portions, with a turn of the loop between two of them."""
    left = iter(group_ids)
    while portion := list(islice(left, _AT_ONCE)):
        yield portion
        if len(portion) == _AT_ONCE:
            await asyncio.sleep(0)
