"""From two samples of a cluster to what a person wants to see: rates, lag in records and seconds, what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headrace.cli.monitor.cluster_sample import GroupSample, PartitionSample, Sample, Traffic
from headrace.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """A broker. Rates are per second; None where nobody says."""

    broker_id: int
    address: str
    rack: str | None
    is_controller: bool
    leaders: int
    replicas: int
    log_bytes: int | None
    bytes_in: float | None
    bytes_out: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic. Rates are per second; None where nobody says."""

    topic: str
    partitions: int
    replication_factor: int
    log_bytes: int | None
    records_in: float | None
    bytes_in: float | None
    bytes_out: float | None
    under_replicated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group. `lag_change_per_s` is below zero while the group catches up. None of a duration: not known."""

    group_id: str
    state: str
    members: int
    topics: Sequence[str]
    lag: int
    lag_s: float | None
    lag_change_per_s: float
    done_in_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleRow:
    """A partition that is not as it should be."""

    topic: str
    partition: int
    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningRow:
    """What a broker says is wrong on it (`/healthz`)."""

    broker_id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """One screen."""

    cluster_id: str
    now_ms: int
    interval_s: float
    brokers: Sequence[BrokerRow]
    topics: Sequence[TopicRow]
    groups: Sequence[GroupRow]
    troubles: Sequence[TroubleRow]
    warnings: Sequence[WarningRow] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def view_of(before: Sample, after: Sample) -> ClusterView:
    """What happened between two samples, and how things are at the second."""
    interval_s = max(after.taken_s - before.taken_s, 1e-6)
    return ClusterView(
        cluster_id=after.cluster_id,
        now_ms=after.now_ms,
        interval_s=round(interval_s, 3),
        brokers=_brokers(before, after, interval_s),
        topics=_topics(before, after, interval_s),
        groups=[
            _group(before.groups.get(name), group, after.now_ms, interval_s)
            for name, group in sorted(after.groups.items())
        ],
        troubles=_troubles(after.partitions),
        warnings=[
            WarningRow(broker_id=number, text=text)
            for number, broker in sorted(after.brokers.items())
            for text in broker.health_reasons
        ],
    )


# ---- brokers


def _brokers(before: Sample, after: Sample, interval_s: float) -> list[BrokerRow]:
    rows = []
    for number, broker in sorted(after.brokers.items()):
        earlier = before.brokers.get(number)
        was = _total(earlier.traffic if earlier else None)
        bytes_in, bytes_out = _byte_rates(was, _total(broker.traffic), interval_s)
        hosted = [each for each in after.partitions.values() if number in each.replicas]
        rows.append(
            BrokerRow(
                broker_id=number,
                address=str(broker.node.address),
                rack=broker.node.rack,
                is_controller=number == after.controller_id,
                leaders=sum(each.leader == number for each in hosted),
                replicas=len(hosted),
                log_bytes=broker.log_bytes,
                bytes_in=bytes_in,
                bytes_out=bytes_out,
            )
        )
    return rows


def _total(traffic: Mapping[str, Traffic] | None) -> Traffic | None:
    if traffic is None:
        return None
    return _sum(traffic.values())


def _sum(parts: Iterable[Traffic]) -> Traffic:
    each = list(parts)
    return Traffic(
        records_in=sum(one.records_in for one in each),
        bytes_in=sum(one.bytes_in for one in each),
        bytes_out=sum(one.bytes_out for one in each),
    )


def _byte_rates(
    was: Traffic | None, now: Traffic | None, interval_s: float
) -> tuple[float | None, float | None]:
    """Bytes in and bytes out."""
    if was is None or now is None:
        return None, None
    return (
        _rate(was.bytes_in, now.bytes_in, interval_s),
        _rate(was.bytes_out, now.bytes_out, interval_s),
    )


def _rate(was: float | None, now: float | None, interval_s: float) -> float | None:
    """Per second; None where it cannot be told, as after a restart of the one who counts."""
    if was is None or now is None or now < was:
        return None
    return (now - was) / interval_s


# ---- topics


def _topics(before: Sample, after: Sample, interval_s: float) -> list[TopicRow]:
    by_topic: dict[str, dict[TopicPartition, PartitionSample]] = {}
    for partition, sample in after.partitions.items():
        by_topic.setdefault(partition.topic, {})[partition] = sample
    rows = []
    for topic, partitions in sorted(by_topic.items()):
        earlier = {
            each: before.partitions[each] for each in partitions if each in before.partitions
        }
        was, now = _topic_traffic(before, topic), _topic_traffic(after, topic)
        bytes_in, bytes_out = _byte_rates(was, now, interval_s)
        if bytes_in is None:
            # Without metrics, what the logs of the leaders have grown by says the same.
            bytes_in = _rate(_bytes(earlier), _bytes(partitions), interval_s)
        rows.append(
            TopicRow(
                topic=topic,
                partitions=len(partitions),
                replication_factor=max(len(each.replicas) for each in partitions.values()),
                log_bytes=_bytes(partitions),
                records_in=_rate(_ends(earlier), _ends(partitions), interval_s),
                bytes_in=bytes_in,
                bytes_out=bytes_out,
                under_replicated=sum(
                    len(each.isr) < len(each.replicas) for each in partitions.values()
                ),
            )
        )
    return sorted(rows, key=lambda row: -(row.records_in or 0))


def _topic_traffic(sample: Sample, topic: str) -> Traffic | None:
    """Over all brokers; None where one of them does not say."""
    parts = []
    for broker in sample.brokers.values():
        if broker.traffic is None:
            return None
        parts.append(broker.traffic.get(topic, Traffic()))
    return _sum(parts)


def _ends(partitions: Mapping[TopicPartition, PartitionSample]) -> int | None:
    ends = [each.end_offset for each in partitions.values()]
    return None if None in ends else sum(end for end in ends if end is not None)


def _bytes(partitions: Mapping[TopicPartition, PartitionSample]) -> int | None:
    sizes = [each.leader_bytes for each in partitions.values()]
    return None if None in sizes else sum(size for size in sizes if size is not None)


# ---- groups


def _group(
    before: GroupSample | None, after: GroupSample, now_ms: int, interval_s: float
) -> GroupRow:
    lag = sum(position.lag for position in after.positions.values())
    earlier = before.positions if before else {}
    was = sum(
        earlier[each].lag if each in earlier else after.positions[each].lag
        for each in after.positions
    )
    lag_change_per_s = (lag - was) / interval_s
    waits_since = [
        position.unread_since_ms
        for position in after.positions.values()
        if position.lag and position.unread_since_ms is not None
    ]
    lag_s: float | None = 0.0
    if lag:
        lag_s = round(max(0, now_ms - min(waits_since)) / 1000, 3) if waits_since else None
    return GroupRow(
        group_id=after.group_id,
        state=after.state,
        members=after.members,
        topics=sorted({partition.topic for partition in after.positions}),
        lag=lag,
        lag_s=lag_s,
        lag_change_per_s=round(lag_change_per_s, 1),
        done_in_s=round(lag / -lag_change_per_s, 1) if lag and lag_change_per_s < 0 else None,
    )


# ---- what is wrong


def _troubles(partitions: Mapping[TopicPartition, PartitionSample]) -> list[TroubleRow]:
    rows = []
    for partition, sample in sorted(partitions.items()):
        if sample.leader < 0:
            what = "nobody leads it"
        elif len(sample.isr) < len(sample.replicas):
            what = "under-replicated"
        else:
            continue
        rows.append(
            TroubleRow(
                topic=partition.topic,
                partition=partition.partition,
                leader=sample.leader,
                replicas=sample.replicas,
                isr=sample.isr,
                what=what,
            )
        )
    return rows
