"""Answers made item by item: the same bytes as of the whole message, others are served in between, and there is an end to it."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from headrace.broker.requests import array_answer
from headrace.broker.requests.array_answer import ArrayAnswer
from headrace.broker.requests.long_work import SLICE_S, Slices
from headrace.wire.codec import encode
from headrace.wire.message import Response
from headrace.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.wire.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from headrace.wire.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup

CONFIGS = [
    DescribeConfigsResult(
        resource_type=2,
        resource_name=f"t{number}",
        error_code=number % 2,
        configs=[DescribeConfigsResourceResult(name="a", value="1")] * number,
    )
    for number in range(200)  # a length of two bytes, too
]
GROUPS = [DescribedGroup(group_id=f"g{number}") for number in range(3)]
OFFSETS = [OffsetFetchResponseGroup(group_id=f"g{number}") for number in range(3)]


@pytest.mark.parametrize(
    ("response_class", "field", "items", "versions"),
    [
        (DescribeConfigsResponse, "results", CONFIGS, range(1, 5)),
        (DescribeGroupsResponse, "groups", GROUPS, range(7)),
        (OffsetFetchResponse, "groups", OFFSETS, range(8, 11)),
        (DescribeGroupsResponse, "groups", [], range(7)),
    ],
)
def test_the_bytes_are_those_of_the_whole_message(
    response_class: type[Response], field: str, items: list[Any], versions: range
) -> None:
    item_class = type(items[0]) if items else DescribedGroup
    for version in versions:
        answer = ArrayAnswer(response_class(), item_class, version, at_once())
        asyncio.run(add_all(answer, items))
        whole = response_class()
        setattr(whole, field, items)
        assert b"".join(answer.encoded()) == encode(whole, version)


def test_the_error_codes_are_counted() -> None:
    answer = ArrayAnswer(DescribeConfigsResponse(), DescribeConfigsResult, 4, at_once())
    asyncio.run(add_all(answer, CONFIGS))
    assert answer.encoded().errors == Counter({0: 100, 1: 100})


def test_others_are_served_after_each_slice() -> None:
    now_s = 0.0
    rounds = 0

    async def make() -> None:
        nonlocal now_s
        slices = Slices(lambda: now_s)
        answer = ArrayAnswer(DescribeConfigsResponse(), DescribeConfigsResult, 4, slices)
        for item in CONFIGS:
            await answer.add(item)
            now_s += SLICE_S / 4

    async def story() -> None:
        nonlocal rounds
        task = asyncio.create_task(make())
        while not task.done():
            await asyncio.sleep(0)
            rounds += 1

    asyncio.run(story())
    assert len(CONFIGS) / 4 <= rounds <= len(CONFIGS) / 4 + 2


def test_an_answer_is_full_at_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_answer, "MAX_ITEM_BYTES", 1000)
    answer = ArrayAnswer(DescribeGroupsResponse(), DescribedGroup, 6, at_once())
    added = 0
    while not answer.is_full:
        asyncio.run(answer.add(GROUPS[0]))
        added += 1
    size = len(b"".join(answer.encoded()))
    assert 1000 <= size <= 1000 + 2 * size / added


def at_once() -> Slices:
    """No time passes, so that there is no pause."""
    return Slices(lambda: 0.0)


async def add_all(answer: ArrayAnswer, items: list[Any]) -> None:
    for item in items:
        await answer.add(item)
