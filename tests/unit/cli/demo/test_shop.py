"""The events of the demo's shop, what counts of them, and the chart of the result."""

import json
import xml.etree.ElementTree as ET

from headrace.cli.demo import shop
from headrace.cli.demo.chart import svg_bars, text_bar, text_bars
from headrace.cli.demo.pipeline_steps import difference


def test_the_same_number_gives_the_same_events() -> None:
    assert shop.events(2000) == shop.events(2000)
    assert [event.number for event in shop.events(2000)] == list(range(2000))


def test_events_come_out_of_order_but_never_too_late() -> None:
    stream = shop.events(5000)
    times = [event.at_s for event in stream]
    assert times != sorted(times)
    newest_s = 0
    for event in stream:
        newest_s = max(newest_s, event.at_s)
        assert not shop.is_too_late(event, newest_s - shop.WATERMARK_S)


def test_half_of_the_latecomers_are_too_late() -> None:
    stream = shop.events(5000)
    watermark = shop.watermark_s(stream)
    late = shop.latecomers(5000, watermark + shop.WATERMARK_S, 100)
    too_late = [event for event in late if shop.is_too_late(event, watermark)]
    assert len(too_late) == 50
    assert all(event.at_s < watermark + shop.WATERMARK_S for event in late)


def test_rows_add_up_to_the_events() -> None:
    stream = shop.events(5000)
    rows = shop.counted(stream)
    assert sum(row.events for row in rows) == 5000
    assert sum(row.cents for row in rows) == sum(event.cents for event in stream)
    assert {row.kind for row in rows} == set(shop.KINDS)
    watermark = shop.watermark_s(stream)
    assert 0 < len(shop.closed(rows, watermark)) < len(rows)
    assert sum(events for _, events, _ in shop.by_window(rows)) == 5000


def test_a_window_closes_when_the_watermark_reaches_its_end() -> None:
    event = shop.Event(0, "u", "view", 0, shop.OPENING_S + 10)
    end = shop.OPENING_S + shop.WINDOW_S
    assert not shop.is_too_late(event, end - 1)
    assert shop.is_too_late(event, end)


def test_values_and_rows_are_json() -> None:
    event = shop.Event(3, "u", "order", 250, shop.OPENING_S)
    assert json.loads(event.value()) == {
        "id": 3,
        "user": "u",
        "kind": "order",
        "cents": 250,
        "at": "2026-03-14T18:00:00Z",
    }
    row = shop.row_of(b'{"window":"2026-03-14T18:00:00Z","kind":"view","events":2,"cents":0}')
    assert row == shop.Row(window_s=shop.OPENING_S, kind="view", events=2, cents=0)


def test_a_difference_is_named() -> None:
    row = shop.Row(window_s=0, kind="view", events=2, cents=0)
    other = shop.Row(window_s=0, kind="view", events=3, cents=0)
    assert "events=2" in difference([row], [other])
    assert difference([row, row], [row]) == "Spark wrote 2 rows, plain Python counts 1"


def test_bars_are_as_long_as_their_share() -> None:
    assert text_bar(2.5) == "██▌"
    assert text_bar(0) == ""
    [(_, longest, _), (label, half, numbers)] = text_bars([("18:00", 80, 0), ("18:05", 40, 1250)])
    assert (len(longest), len(half), label) == (32, 16, "18:05")
    assert numbers.split() == ["40", "events", "12.50", "€"]


def test_the_picture_is_well_formed_and_escapes_its_texts() -> None:
    root = ET.fromstring(svg_bars("a < b", "c & d", [("18:00", 5, 100)]))
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "c & d", "18:00", "1 €"} <= set(texts)
