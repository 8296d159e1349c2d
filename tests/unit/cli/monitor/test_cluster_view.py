"""Rates, lag and trouble from two samples of a cluster."""

from dataclasses import replace

from headrace.cli.monitor.cluster_sample import (
    BrokerSample,
    GroupSample,
    PartitionSample,
    Position,
    Sample,
    Traffic,
    time_in_batch,
    traffic_of,
)
from headrace.cli.monitor.cluster_view import view_of
from headrace.client.brokers import Address
from headrace.client.cluster_metadata import Node
from headrace.ids import TopicPartition
from headrace.records.batch_builder import build_batch, records_at

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW_MS = 1_000_000


def broker(number: int, traffic: dict[str, Traffic] | None) -> BrokerSample:
    node = Node(broker_id=number, address=Address("here", 9091 + number), rack=None)
    return BrokerSample(node=node, log_bytes=1000, traffic=traffic)


def partition(
    end: int | None, size: int | None = 100, isr: tuple[int, ...] = (1, 2)
) -> PartitionSample:
    return PartitionSample(leader=1, replicas=(1, 2), isr=isr, end_offset=end, leader_bytes=size)


def sample(taken_s: float, *ends: int | None, traffic: dict[str, Traffic] | None = None) -> Sample:
    return Sample(
        taken_s=taken_s,
        now_ms=NOW_MS,
        cluster_id="c",
        controller_id=2,
        brokers={1: broker(1, traffic), 2: broker(2, traffic)},
        partitions={
            TopicPartition("orders", index): partition(end) for index, end in enumerate(ends)
        },
    )


def group(*positions: Position) -> dict[str, GroupSample]:
    places = {TopicPartition("orders", index): each for index, each in enumerate(positions)}
    return {"g": GroupSample(group_id="g", state="Stable", members=1, positions=places)}


def test_records_per_second_are_the_growth_of_the_logs() -> None:
    [topic] = view_of(sample(10, 100, 200), sample(12, 140, 210)).topics
    assert (topic.partitions, topic.replication_factor) == (2, 2)
    assert topic.records_in == 25


def test_a_rate_that_cannot_be_told_is_none() -> None:
    [unknown] = view_of(sample(10, 100), sample(12, None)).topics
    [shrunk] = view_of(sample(10, 100), sample(12, 90)).topics
    assert unknown.records_in is None
    assert shrunk.records_in is None


def test_bytes_come_from_metrics_of_all_brokers_and_else_from_the_logs() -> None:
    before = sample(10, 0, traffic={"orders": Traffic(bytes_in=100, bytes_out=10)})
    after = sample(12, 0, traffic={"orders": Traffic(bytes_in=300, bytes_out=20)})
    view = view_of(before, after)
    assert (view.topics[0].bytes_in, view.topics[0].bytes_out) == (200, 10)
    assert (view.brokers[0].bytes_in, view.brokers[0].bytes_out) == (100, 5)
    grown = replace(sample(12, 0), partitions={P0: partition(0, size=700)})
    [topic] = view_of(sample(10, 0), grown).topics
    assert (topic.bytes_in, topic.bytes_out) == (300, None)


def test_lag_in_records_and_in_seconds_with_its_trend() -> None:
    before = replace(sample(10, 0, 0), groups=group(Position(committed=0, end_offset=100)))
    places = (
        Position(committed=40, end_offset=100, unread_since_ms=NOW_MS - 8_000),
        Position(committed=50, end_offset=50, unread_since_ms=NOW_MS - 99_000),
    )
    [row] = view_of(before, replace(sample(12, 0, 0), groups=group(*places))).groups
    assert (row.lag, row.lag_s) == (60, 8.0)
    assert (row.lag_change_per_s, row.done_in_s) == (-20, 3.0)


def test_a_group_that_has_read_everything_is_not_behind() -> None:
    done = replace(sample(12, 5), groups=group(Position(committed=5, end_offset=5)))
    [row] = view_of(sample(10, 5), done).groups
    assert (row.lag, row.lag_s, row.lag_change_per_s, row.done_in_s) == (0, 0.0, 0, None)


def test_how_long_a_group_is_behind_is_unknown_where_no_record_told_its_time() -> None:
    behind = replace(sample(12, 5), groups=group(Position(committed=1, end_offset=5)))
    [row] = view_of(sample(10, 5), behind).groups
    assert (row.lag, row.lag_s) == (4, None)


def test_partitions_in_trouble() -> None:
    partitions = {
        P0: partition(1, isr=(1,)),
        P1: PartitionSample(leader=-1, replicas=(1, 2), isr=(2,)),
        TopicPartition("fine", 0): partition(1),
    }
    view = view_of(sample(10, 0), replace(sample(12, 0), partitions=partitions))
    assert [(each.partition, each.what) for each in view.troubles] == [
        (0, "under-replicated"),
        (1, "nobody leads it"),
    ]
    assert {row.topic: row.under_replicated for row in view.topics} == {"orders": 2, "fine": 0}


def test_brokers_know_their_controller_and_what_they_lead() -> None:
    first, second = view_of(sample(10, 0, 0), sample(12, 0, 0)).brokers
    assert (first.leaders, first.replicas, first.is_controller) == (2, 2, False)
    assert (second.leaders, second.replicas, second.is_controller) == (0, 2, True)


def test_counters_are_found_on_a_page_of_metrics() -> None:
    page = (
        "# TYPE kafka_server_brokertopicmetrics_bytesin_total counter\n"
        "kafka_server_brokertopicmetrics_bytesin_total 999\n"
        'kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 12\n'
        'kafka_server_brokertopicmetrics_messagesin_total{topic="a"} 3\n'
        'kafka_server_brokertopicmetrics_bytesout_total{topic="b"} 1e3\n'
    )
    assert traffic_of(page) == {
        "a": Traffic(records_in=3, bytes_in=12),
        "b": Traffic(bytes_out=1000),
    }


def test_the_time_of_a_record_is_read_from_its_batch() -> None:
    batch = bytes(build_batch(records_at(0, 5000, [(None, b"x"), (None, b"y")])))
    assert time_in_batch(batch, 0) == 5000
    assert time_in_batch(batch[:20], 0) is None
