"""Sees that the topic `_schemas` exists and can hold schemas: one partition, compacted. Blocking, over the admin client."""

import logging
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import ResourceType, describe_configs
from headrace.client.admin.partitions import FoundOffset, OffsetSpec, list_offsets
from headrace.client.admin.topics import create_topic, describe_topics
from headrace.client.retries import REAL_TIME, BlockingTime
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused

_log = logging.getLogger(__name__)
# A record that does not count is compacted away only after a primary had the time to write the one that does.
_CONFIGS: Final = {"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000"}
_NEW_TOPIC_S: Final = 30.0


class UnfitTopic(HeadraceError):
    """The topic exists, but schemas would be lost or disordered in it."""


def prepare(
    admin: Admin,
    topic: str,
    replication_factor: int,
    blocking_time: BlockingTime = REAL_TIME,
) -> int:
    """Create the topic if it is missing; returns the offset of its end. Raises UnfitTopic, Refused."""
    described = describe_topics(admin, [topic]).get(topic)
    if described is None or isinstance(described, Refusal):
        if (
            isinstance(described, Refusal)
            and described.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            raise Refused.of(described)
        _create(admin, topic, replication_factor)
    else:
        if len(described.partitions) != 1:
            raise UnfitTopic(
                f"{topic} has {len(described.partitions)} partitions; a schema registry needs exactly one"
            )
        _check_compacted(admin, topic)
    return _end_of(admin, TopicPartition(topic, 0), blocking_time)


def _end_of(admin: Admin, place: TopicPartition, blocking_time: BlockingTime) -> int:
    """The offset of a partition's end. Not every broker knows of a topic that has just been created."""
    patience = blocking_time.patience(_NEW_TOPIC_S)
    while True:
        found = list_offsets(admin, [place], OffsetSpec.LATEST)[place]
        if isinstance(found, FoundOffset):
            return found.offset
        if found.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or patience.is_over():
            raise Refused.of(found)
        patience.pause()


def _create(admin: Admin, topic: str, replication_factor: int) -> None:
    brokers = len(admin.cluster().nodes)
    factor = min(replication_factor, brokers)
    if factor < replication_factor:
        _log.warning(
            "%s is created with %d replicas, because there are no more brokers", topic, factor
        )
    try:
        create_topic(admin, topic, partitions=1, replication_factor=factor, configs=_CONFIGS)
    except Refused as refused:
        if refused.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


def _check_compacted(admin: Admin, topic: str) -> None:
    """A topic that deletes by age would lose schemas that are in use."""
    configs = describe_configs(admin, ResourceType.TOPIC, [topic]).get(topic)
    if isinstance(configs, Refusal) or configs is None:
        return
    policy = next((each.value for each in configs if each.name == "cleanup.policy"), None)
    if policy != "compact":
        raise UnfitTopic(
            f"{topic} has cleanup.policy={policy}: schemas would be deleted. Set cleanup.policy=compact"
        )
