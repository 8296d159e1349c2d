"""A cluster at one moment, as clients can see it: what `headrace top` computes rates and lags from.

Asks over the Kafka protocol, so that it works with any Kafka. Brokers of Headrace that have an HTTP listener are asked for
`/metrics` and `/healthz`, too, because the protocol does not tell what consumers read and what is wrong. A broker that does not answer leaves a gap, no error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.cli.shell.broker_pages import health_reasons, metrics_text, pages_of
from headrace.client.admin.admin import Admin
from headrace.client.admin.group_offsets import committed_offsets
from headrace.client.admin.groups import describe_group, list_consumer_groups
from headrace.client.admin.partitions import (
    FoundOffset,
    OffsetSpec,
    describe_log_dirs,
    list_offsets,
)
from headrace.client.cluster_metadata import Node
from headrace.client.exchange import Disconnected
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.records.batch_view import HEADER_BYTES, read_header
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.refusal import Refused

_MOST_TIMES_ASKED = 40  # records whose time is looked up for one sample, the furthest behind first
_COUNTER = re.compile(
    r'^kafka_server_brokertopicmetrics_(messagesin|bytesin|bytesout)_total\{topic="([^"]*)"\} (\S+)$',
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a broker has taken and given of a topic since it started."""

    records_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSample:
    """A broker; None where it did not say."""

    node: Node
    log_bytes: int | None = None
    traffic: Mapping[str, Traffic] | None = None
    health_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSample:
    """A partition as metadata, its leader and the leader's log directory tell of it."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    end_offset: int | None = None
    leader_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a group is in a partition. `unread_since_ms` is the time of the first record it has not read."""

    committed: int
    end_offset: int
    unread_since_ms: int | None = None

    @property
    def lag(self) -> int:
        return max(0, self.end_offset - self.committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSample:
    """A group and where it is."""

    group_id: str
    state: str
    members: int
    positions: Mapping[TopicPartition, Position]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cluster at one moment. `taken_s` is of a clock that only goes forward, `now_ms` is the time of day."""

    taken_s: float
    now_ms: int
    cluster_id: str
    controller_id: int
    brokers: Mapping[int, BrokerSample]
    partitions: Mapping[TopicPartition, PartitionSample]
    groups: Mapping[str, GroupSample] = field(default_factory=dict)


class Sampler:
    """Takes samples of one cluster."""

    def __init__(self, admin: Admin, *, with_internal: bool = False) -> None:
        self._admin = admin
        self._with_internal = with_internal
        self._pages: dict[int, str | None] = {}
        self._times: dict[tuple[TopicPartition, int], int] = {}

    def take(self) -> Sample:
        """Ask everybody. Raises HeadraceError where no broker answers."""
        admin = self._admin
        metadata = admin.metadata(None)
        cluster = admin.cluster()
        known = {
            TopicPartition(topic.name or "", each.partition_index): each
            for topic in metadata.topics
            if self._with_internal or not topic.is_internal
            for each in topic.partitions
        }
        ends = self._end_offsets(known)
        taken_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
        sizes: dict[tuple[int, TopicPartition], int] = {}
        brokers = {number: self._broker(node, sizes) for number, node in cluster.nodes.items()}
        partitions = {
            partition: PartitionSample(
                leader=each.leader_id,
                replicas=tuple(each.replica_nodes),
                isr=tuple(each.isr_nodes),
                end_offset=ends.get(partition),
                leader_bytes=sizes.get((each.leader_id, partition)),
            )
            for partition, each in known.items()
        }
        return Sample(
            taken_s=taken_s,
            now_ms=now_ms,
            cluster_id=cluster.cluster_id or "",
            controller_id=cluster.controller_id,
            brokers=brokers,
            partitions=partitions,
            groups=self._groups(ends),
        )

    def _end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        try:
            found = list_offsets(self._admin, partitions, OffsetSpec.LATEST)
        except (Disconnected, Refused):
            return {}
        return {
            each: place.offset for each, place in found.items() if isinstance(place, FoundOffset)
        }

    # ---- brokers

    def _broker(self, node: Node, sizes: dict[tuple[int, TopicPartition], int]) -> BrokerSample:
        number = node.broker_id
        log_bytes = None
        try:
            for directory in describe_log_dirs(self._admin, number):
                for replica in directory.replicas:
                    log_bytes = (log_bytes or 0) + replica.size_bytes
                    if not replica.is_future:
                        sizes[number, replica.partition] = replica.size_bytes
        except HeadraceError:
            return BrokerSample(node=node)
        if number not in self._pages:
            self._pages[number] = pages_of(self._admin, node)
        pages = self._pages[number]
        metrics = None if pages is None else metrics_text(pages)
        return BrokerSample(
            node=node,
            log_bytes=log_bytes or 0,
            traffic=None if metrics is None else traffic_of(metrics),
            health_reasons=(health_reasons(pages) or ()) if pages and metrics else (),
        )

    # ---- groups

    def _groups(self, ends: Mapping[TopicPartition, int]) -> dict[str, GroupSample]:
        found: dict[str, GroupSample] = {}
        try:
            listed = list_consumer_groups(self._admin)
        except HeadraceError:
            return found
        for each in listed:
            try:
                found[each.group_id] = self._group(each.group_id, ends)
            except HeadraceError:
                continue  # its coordinator is moving, or it has just gone: the others are shown
        return self._with_times(found)

    def _group(self, group_id: str, ends: Mapping[TopicPartition, int]) -> GroupSample:
        described = describe_group(self._admin, group_id)
        committed = committed_offsets(self._admin, group_id)
        positions = {
            partition: Position(committed=place.offset, end_offset=ends[partition])
            for partition, place in committed.items()
            if partition in ends
        }
        return GroupSample(
            group_id=group_id,
            state=described.state,
            members=len(described.members),
            positions=positions,
        )

    def _with_times(self, groups: dict[str, GroupSample]) -> dict[str, GroupSample]:
        """Look up since when the first unread record of each partition waits."""
        behind = sorted(
            (
                (position.lag, partition, position.committed)
                for group in groups.values()
                for partition, position in group.positions.items()
                if position.lag
            ),
            reverse=True,
        )
        wanted = {(partition, offset) for _, partition, offset in behind[:_MOST_TIMES_ASKED]}
        self._times = {
            place: known
            for place in wanted
            if (known := self._times.get(place) or self._time_of(*place)) is not None
        }
        return {
            name: GroupSample(
                group_id=group.group_id,
                state=group.state,
                members=group.members,
                positions={
                    partition: Position(
                        committed=position.committed,
                        end_offset=position.end_offset,
                        unread_since_ms=self._times.get((partition, position.committed)),
                    )
                    for partition, position in group.positions.items()
                },
            )
            for name, group in groups.items()
        }

    def _time_of(self, partition: TopicPartition, offset: int) -> int | None:
        """The timestamp of the record at an offset, from the header of its batch."""
        view = next(iter(self._admin.metadata([partition.topic]).topics), None)
        leaders = {each.partition_index: each.leader_id for each in view.partitions} if view else {}
        if view is None or leaders.get(partition.partition, -1) < 0:
            return None
        wanted = FetchPartition(
            partition=partition.partition, fetch_offset=offset, partition_max_bytes=1
        )
        topic = FetchTopic(topic=partition.topic, topic_id=view.topic_id, partitions=[wanted])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[topic])
        try:
            answer = self._admin.ask_broker(leaders[partition.partition], request)
        except HeadraceError:
            return None
        for response in answer.responses:
            for each in response.partitions:
                return time_in_batch(each.records or b"", offset)
        return None


def time_in_batch(records: bytes | memoryview, offset: int) -> int | None:
    """About when the record at an offset was written: between the first and the last time of its batch."""
    if len(records) < HEADER_BYTES:
        return None
    header = read_header(records)
    if header.is_log_append_time or header.last_offset_delta <= 0:
        return header.max_timestamp
    share = min(1.0, max(0.0, (offset - header.base_offset) / header.last_offset_delta))
    return round(header.base_timestamp + share * (header.max_timestamp - header.base_timestamp))


def traffic_of(page: str) -> dict[str, Traffic]:
    """The counters of topics on a page of metrics."""
    counted: dict[str, dict[str, int]] = {}
    for kind, topic, value in _COUNTER.findall(page):
        counted.setdefault(topic, {})[kind] = int(float(value))
    return {
        topic: Traffic(
            records_in=kinds.get("messagesin", 0),
            bytes_in=kinds.get("bytesin", 0),
            bytes_out=kinds.get("bytesout", 0),
        )
        for topic, kinds in counted.items()
    }
