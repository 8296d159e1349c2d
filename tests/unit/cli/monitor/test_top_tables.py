"""How `headrace top` writes values, and how tables share a screen."""

import pytest

from headrace.cli.monitor.cluster_view import (
    BrokerRow,
    ClusterView,
    GroupRow,
    TopicRow,
    TroubleRow,
    WarningRow,
)
from headrace.cli.monitor.top_tables import (
    Table,
    duration,
    fitted,
    plain_lines,
    row_shares,
    size,
    trend,
)


def group_row(
    lag: int = 0, lag_change_per_s: float = 0, done_in_s: float | None = None
) -> GroupRow:
    return GroupRow(
        group_id="g",
        state="Stable",
        members=2,
        topics=["a", "b"],
        lag=lag,
        lag_s=1.5,
        lag_change_per_s=lag_change_per_s,
        done_in_s=done_in_s,
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1,023 B"),
        (1536, "1.5 KiB"),
        (200 * 1024, "200 KiB"),
        (5 * 1024**3, "5.0 GiB"),
        (2 * 1024**4, "2.0 TiB"),
    ],
)
def test_sizes(value: float | None, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0 s"),
        (1.25, "1.2 s"),
        (75, "75 s"),
        (600, "10 min"),
        (7200, "2 h"),
        (3 * 86400, "3 days"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_trends() -> None:
    assert trend(group_row(lag=10, lag_change_per_s=5)) == "↗ 5/s"
    assert trend(group_row(lag=10, lag_change_per_s=-5, done_in_s=2)) == "↘ 5/s, done in 2.0 s"
    assert trend(group_row(lag=10)) == "→"
    assert trend(group_row()) == ""


def test_long_texts_are_cut_to_the_screen_and_numbers_are_not() -> None:
    table = Table("t", ("topic", " records/s"), [("a-very-long-name-of-a-topic", "1,234,567")])
    assert fitted(table, 60) == table
    assert fitted(table, 30).rows == [("a-very-long-name…", "1,234,567")]
    assert fitted(table, 1).rows == [("a-very-…", "1,234,567")]


def test_small_tables_are_shown_whole_and_large_ones_share_the_rest() -> None:
    assert row_shares([1, 2, 100], 40) == [1, 2, 24]
    assert row_shares([50, 50], 29) == [10, 10]
    assert row_shares([9, 9, 9], 5) == [3, 3, 3]


def test_plain_text_is_aligned_and_names_what_is_wrong() -> None:
    view = ClusterView(
        cluster_id="c",
        now_ms=0,
        interval_s=1.0,
        brokers=[
            BrokerRow(
                broker_id=1,
                address="here:9092",
                rack="r1",
                is_controller=True,
                leaders=3,
                replicas=6,
                log_bytes=10,
                bytes_in=None,
                bytes_out=2048,
            )
        ],
        topics=[
            TopicRow(
                topic="orders",
                partitions=3,
                replication_factor=2,
                log_bytes=10,
                records_in=12345,
                bytes_in=1,
                bytes_out=None,
                under_replicated=1,
            )
        ],
        groups=[group_row()],
        troubles=[
            TroubleRow(
                topic="orders",
                partition=2,
                leader=-1,
                replicas=(1, 2),
                isr=(2,),
                what="nobody leads it",
            )
        ],
        warnings=[WarningRow(broker_id=1, text="the disk is full")],
    )
    lines = plain_lines(view)
    assert lines[2:9] == [
        "1 warning of brokers",
        "  BROKER  WARNING",
        "  1       the disk is full",
        "",
        "1 partition in trouble",
        "  PARTITION  LEADER  REPLICAS  IN SYNC  TROUBLE",
        "  orders-2   -       1,2       2        nobody leads it",
    ]
    assert "  1*  here:9092 (r1)      3         6     10 B     -  2.0 KiB" in lines
    assert "1 group" in lines
