"""Known schemas at once, others once for all who wait."""

import asyncio
import threading
from typing import Any, cast

import pytest

from headrace.rest.errors import RestError
from headrace.rest.schemas.schema_choice import SchemaChoice
from headrace.rest.schemas.schema_selector import SchemaSelector
from headrace.rest.schemas.schema_threads import SchemaThreads

NEWEST = SchemaSelector("t", False)
FIXED = NEWEST._replace(schema_id=1)


class Choice:
    """Counts questions; answers when it may."""

    def __init__(self) -> None:
        self.asked: list[SchemaSelector] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def for_writing(self, selector: SchemaSelector) -> Any:
        self.asked.append(selector)
        assert self.may_answer.wait(30)
        return f"schema {len(self.asked)}"

    def close(self) -> None:
        pass


def threads(choice: Choice, clock: list[float]) -> SchemaThreads:
    return SchemaThreads(cast(SchemaChoice, choice), clock=lambda: clock[0])


def test_the_newest_is_asked_for_again_after_a_while_and_others_never() -> None:
    async def story() -> None:
        choice, clock = Choice(), [0.0]
        schemas = threads(choice, clock)
        for selector in (NEWEST, FIXED, NEWEST, FIXED):
            await schemas.find(selector)
        assert len(choice.asked) == 2
        clock[0] = 5.0
        assert schemas.known(NEWEST) is None
        assert schemas.known(FIXED) is not None
        await schemas.find(NEWEST)
        assert choice.asked == [NEWEST, FIXED, NEWEST]
        await schemas.close()

    asyncio.run(story())


def test_all_who_wait_share_one_question() -> None:
    async def story() -> None:
        choice = Choice()
        choice.may_answer.clear()
        schemas = threads(choice, [0.0])
        waiting = [asyncio.create_task(schemas.find(FIXED)) for _ in range(50)]
        gone = waiting.pop()
        await asyncio.sleep(0)
        gone.cancel()  # a client that went away takes nothing from the others
        choice.may_answer.set()
        assert set(map(str, await asyncio.gather(*waiting))) == {"schema 1"}
        assert choice.asked == [FIXED]
        await schemas.close()

    asyncio.run(story())


def test_without_a_registry() -> None:
    async def story() -> None:
        schemas = SchemaThreads(None)
        with pytest.raises(RestError, match="Schema Registry must be configured"):
            await schemas.find(FIXED)
        await schemas.close()

    asyncio.run(story())
