"""`topics --describe`: topics and partitions as Kafka prints them, or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headrace.cli.shell.command_line import Failure, UsageError
from headrace.cli.shell.output import print_json, wants_json
from headrace.cli.topics.topic_choice import FILTERS, matching_topics
from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import (
    ConfigEntry,
    ConfigSource,
    ResourceType,
    describe_configs,
)
from headrace.client.admin.reassignments import Reassignment, list_reassignments
from headrace.client.admin.topics import (
    PartitionDescription,
    TopicDescription,
    describe_topics,
    list_topics,
)
from headrace.ids import NO_TOPIC_ID, TopicPartition, id_of_text, text_of_id
from headrace.wire.refusal import Refusal, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """A partition and what decides whether it is worth showing."""

    topic: str
    found: PartitionDescription
    reassignment: Reassignment | None
    min_isr: int
    is_led: bool

    @property
    def replication_factor(self) -> int:
        return replication_factor(self.found, self.reassignment)

    def is_wanted(self, options: argparse.Namespace) -> bool:
        if not any(getattr(options, name.replace("-", "_")) for name in FILTERS):
            return True
        in_sync = len(self.found.isr)
        return bool(
            (options.under_replicated_partitions and in_sync < self.replication_factor)
            or (options.unavailable_partitions and not self.is_led)
            or (
                options.under_min_isr_partitions
                and (self.found.leader_id is None or in_sync < self.min_isr)
            )
            or (options.at_min_isr_partitions and in_sync == self.min_isr)
        )

    def line(self) -> str:
        found = self.found
        leader = "none" if found.leader_id is None else found.leader_id
        text = f"\tTopic: {self.topic}\tPartition: {found.partition}\tLeader: {leader}"
        text += f"\tReplicas: {_joined(found.replicas)}\tIsr: {_joined(found.isr)}"
        if self.reassignment is not None:
            text += f"\tAdding Replicas: {_joined(self.reassignment.adding)}"
            text += f"\tRemoving Replicas: {_joined(self.reassignment.removing)}"
        elr, last_known = found.elr, found.last_known_elr
        text += f"\tElr: {'N/A' if elr is None else _joined(elr)}"
        return text + f"\tLastKnownElr: {'N/A' if last_known is None else _joined(last_known)}"

    def as_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "partition": self.found.partition,
            "leader": self.found.leader_id,
            "replicas": list(self.found.replicas),
            "isr": list(self.found.isr),
            "elr": None if self.found.elr is None else list(self.found.elr),
            "lastKnownElr": (
                None if self.found.last_known_elr is None else list(self.found.last_known_elr)
            ),
        }
        if self.reassignment is not None:
            value["addingReplicas"] = list(self.reassignment.adding)
            value["removingReplicas"] = list(self.reassignment.removing)
        return value


def describe(admin: Admin, options: argparse.Namespace) -> None:
    """Print the topics that the options mean."""
    topics = _described(admin, options)
    configs = describe_configs(admin, ResourceType.TOPIC, [topic.name for topic in topics])
    reassignments = list_reassignments(
        admin, {topic.name: [each.partition for each in topic.partitions] for topic in topics}
    )
    alive = set(admin.cluster().nodes)
    as_json = []
    for topic in topics:
        entries = configs.get(topic.name)
        if isinstance(entries, Refusal):
            raise Refused.of(entries)
        own = [each for each in entries or () if each.source is not ConfigSource.DEFAULT_CONFIG]
        partitions = [
            PartitionReport(
                topic=topic.name,
                found=each,
                reassignment=reassignments.get(TopicPartition(topic.name, each.partition)),
                min_isr=_min_isr(entries or ()),
                is_led=each.leader_id in alive,
            )
            for each in topic.partitions
        ]
        if options.topics_with_overrides and not own:
            continue
        wanted = [each for each in partitions if each.is_wanted(options)]
        if wants_json(options):
            if wanted:
                as_json.append(_topic_json(topic, own, partitions, wanted))
            continue
        if not any(getattr(options, name.replace("-", "_")) for name in FILTERS):
            print(_topic_line(topic, own, partitions))
        if not options.topics_with_overrides:
            for partition in wanted:
                print(partition.line())
    if wants_json(options):
        print_json(as_json)


def _parse_topic_id(text: str) -> UUID:
    try:
        return id_of_text(text)
    except ValueError as wrong:
        raise UsageError(f"--topic-id: '{text}' is not a topic id") from wrong


def _described(admin: Admin, options: argparse.Namespace) -> list[TopicDescription]:
    topic_id = _parse_topic_id(options.topic_id) if options.topic_id else NO_TOPIC_ID
    if topic_id != NO_TOPIC_ID:
        names = [each.name for each in list_topics(admin) if each.topic_id == topic_id]
        if not names and not options.if_exists:
            raise Failure(f"TopicId '{options.topic_id}' does not exist as expected")
    else:
        names = matching_topics(
            admin,
            options.topic,
            exclude_internal=options.exclude_internal,
            must_exist=not options.if_exists,
        )
    limit = options.partition_size_limit_per_response
    found = []
    for topic in describe_topics(admin, names, page_partitions=limit).values():
        if isinstance(topic, Refusal):
            raise Refused.of(topic)
        found.append(topic)
    return found


def _topic_line(
    topic: TopicDescription, own: Sequence[ConfigEntry], partitions: Sequence[PartitionReport]
) -> str:
    text = f"Topic: {topic.name}"
    if topic.topic_id != NO_TOPIC_ID:
        text += f"\tTopicId: {text_of_id(topic.topic_id)}"
    text += f"\tPartitionCount: {len(partitions)}"
    text += f"\tReplicationFactor: {partitions[0].replication_factor}"
    return text + "\tConfigs: " + ",".join(f"{each.name}={_value(each)}" for each in own)


def _topic_json(
    topic: TopicDescription,
    own: Sequence[ConfigEntry],
    partitions: Sequence[PartitionReport],
    wanted: Iterable[PartitionReport],
) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topicId": text_of_id(topic.topic_id),
        "partitionCount": len(partitions),
        "replicationFactor": partitions[0].replication_factor,
        "configs": {each.name: each.value for each in own},
        "partitions": [each.as_json() for each in wanted],
    }


def _value(entry: ConfigEntry) -> str:
    return "null" if entry.value is None else entry.value


def _min_isr(entries: Iterable[ConfigEntry]) -> int:
    for entry in entries:
        if entry.name == "min.insync.replicas" and entry.value is not None:
            return int(entry.value)
    return 1


def replication_factor(found: PartitionDescription, reassignment: Reassignment | None) -> int:
    """How many replicas a partition has to have: those that are only arriving do not count."""
    if reassignment is not None:
        changing = {*reassignment.adding, *reassignment.removing}
        if changing & set(found.replicas):
            return len(reassignment.replicas) - len(reassignment.adding)
    return len(found.replicas)


def _joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
