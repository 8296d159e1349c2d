"""SQL over topics: which topics a query names, and how rows and offsets are shown."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Row

from headrace.pipelines.topic_sql import Covered, json_value, text_table, with_views


def test_topics_become_views() -> None:
    text = "select * from topic(orders) o join TOPIC( 'my-topic.v1' ) using (id), topic(orders)"
    plain, views = with_views(text)
    assert views == {"topic_0_orders": "orders", "topic_1_my_topic_v1": "my-topic.v1"}
    assert plain == (
        "select * from topic_0_orders o join topic_1_my_topic_v1 using (id), topic_0_orders"
    )


def test_topics_whose_names_differ_in_signs_only_stay_apart() -> None:
    _, views = with_views("select * from topic(a.b), topic(a-b)")
    assert sorted(views.values()) == ["a-b", "a.b"]
    assert len(views) == 2


def test_a_table_of_text() -> None:
    assert text_table(["id", "name"], [[1, None], [22, "Ann"]]).splitlines() == [
        "id | name",
        "---+-----",
        "1  | NULL",
        "22 | Ann",
    ]
    assert text_table(["n"], []).splitlines() == ["n", "-"]


def test_structs_arrays_and_maps_are_shown_as_json() -> None:
    inner = Row(
        id=1,
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        price=Decimal("1.50"),
        raw=bytearray(b"x"),
    )
    shown = '{"id": 1, "at": "2026-01-02 03:04:05+00:00", "price": "1.50", "raw": "eA=="}'
    rows: list[list[Any]] = [
        [inner],
        [[inner, None]],
        [{1: inner}],
        ["é"],
        [["é", 1.5, True]],
        [{date(2026, 1, 2): 1}],
    ]
    assert text_table(["v"], rows).splitlines()[2:] == [
        shown,
        f"[{shown}, null]",
        f'{{"1": {shown}}}',
        "é",
        '["é", 1.5, true]',
        '{"2026-01-02": 1}',
    ]
    assert json.dumps(json_value(Row(value=inner))) == f'{{"value": {shown}}}'


def test_offsets_that_were_covered() -> None:
    assert str(Covered(topic="t", ranges=[(0, 3, 10), (1, 4, 4)])) == "t: offsets 0: 3-9"
    assert str(Covered(topic="t", ranges=[(0, 0, 0)])) == "t: no records"
