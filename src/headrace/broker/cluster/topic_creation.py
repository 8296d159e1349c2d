"""Automatic creation of topics: those that Metadata names, and internal topics of coordinators for FindCoordinator.

Owns the number of partitions, the replication factor and the configs of such a topic. Clients that want the same topic at the same
time cause one request to the controller. The caller finds the outcome in the cluster state; if the topic is missing there, the client
tries again. One event loop owns it.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.controller_call import ask_controller
from headrace.controller.core import Controller
from headrace.controller.topics import CreateTopics, NewTopic, name_fault
from headrace.internal_topics import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

_logger = logging.getLogger(__name__)

# Their coordinators are not offered, and nobody else may write to them.
_NOT_OFFERED: Final = frozenset((SHARE_GROUP_STATE, CLUSTER_METADATA))
_MAX_AT_ONCE: Final = 1_000  # the rest of a longer list is created when the client asks again
_PATIENCE_S: Final = 5.0


class TopicCreation:
    """Creates topics on behalf of Metadata and FindCoordinator."""

    def __init__(
        self, controller: Controller, live_settings: LiveSettings, cluster: ClusterView
    ) -> None:
        self._controller = controller
        self._live_settings = live_settings
        self._cluster = cluster
        self._under_way: dict[str, asyncio.Event] = {}

    async def create(self, names: Iterable[str]) -> None:
        """Create these topics as far as possible. Returns when the controller has answered or could not be reached."""
        wanted = list(dict.fromkeys(names))
        asked_by_others = {self._under_way[name] for name in wanted if name in self._under_way}
        ours = [name for name in wanted if self._may_be_created(name)][:_MAX_AT_ONCE]
        try:
            async with asyncio.timeout(_PATIENCE_S):
                if ours:
                    await self._create(ours)
                for done in asked_by_others:
                    await done.wait()
        except TimeoutError:
            _logger.warning("topics %s: not created in time", ", ".join(wanted[:10]))

    def _may_be_created(self, name: str) -> bool:
        return (
            name not in self._under_way
            and name not in self._cluster.state.topics
            and name not in _NOT_OFFERED
            and name_fault(name) is None
        )

    async def _create(self, names: list[str]) -> None:
        done = asyncio.Event()
        self._under_way.update(dict.fromkeys(names, done))
        try:
            request = CreateTopics(topics=tuple(map(self._new_topic, names)))
            answers = await ask_controller(self._controller.ask(request))
        finally:
            # Also if the first caller was cancelled, because others wait for the same topics.
            for name in names:
                del self._under_way[name]
            done.set()
        if isinstance(answers, Refusal):
            _logger.warning("topics %s: not created: %s", ", ".join(names[:10]), answers.message)
            return
        for answer in answers:
            if answer.error is ErrorCode.NONE:
                _logger.info("topic %s: created because a client asked for it", answer.name)
            elif answer.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
                _logger.warning("topic %s: not created: %s", answer.name, answer.message)

    def _new_topic(self, name: str) -> NewTopic:
        settings = self._live_settings.current
        if name == CONSUMER_OFFSETS:
            return NewTopic(
                name=name,
                num_partitions=settings.offsets_topic_num_partitions,
                replication_factor=self._at_most_brokers(
                    settings.offsets_topic_replication_factor,
                    is_set=settings.is_set("offsets.topic.replication.factor"),
                ),
                configs=offsets_topic_configs(settings),
            )
        if name == TRANSACTION_STATE:
            factor = self._at_most_brokers(
                settings.transaction_state_log_replication_factor,
                is_set=settings.is_set("transaction.state.log.replication.factor"),
            )
            return NewTopic(
                name=name,
                num_partitions=settings.transaction_state_log_num_partitions,
                replication_factor=factor,
                configs=transaction_topic_configs(settings, factor),
            )
        return NewTopic(name=name)

    def _at_most_brokers(self, factor: int, *, is_set: bool) -> int:
        """The replication factor, at most the number of brokers: with the default of 3, a small cluster could have no groups."""
        return factor if is_set else min(factor, max(1, len(self._cluster.state.brokers)))


def internal_topic_configs(
    settings: BrokerSettings, replication_factor: int
) -> dict[str, dict[str, str]]:
    """Topic → configs with which it is made, of the internal topics that hold records."""
    return {
        CONSUMER_OFFSETS: offsets_topic_configs(settings),
        TRANSACTION_STATE: transaction_topic_configs(settings, replication_factor),
    }


def offsets_topic_configs(settings: BrokerSettings) -> dict[str, str]:
    """The configs with which `__consumer_offsets` is made."""
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(settings.offsets_topic_segment_bytes),
    }


def transaction_topic_configs(settings: BrokerSettings, replication_factor: int) -> dict[str, str]:
    """The configs with which `__transaction_state` is made."""
    min_isr = settings.transaction_state_log_min_isr
    if not settings.is_set("transaction.state.log.min.isr"):
        # The default of 2 would refuse every transaction where there is one replica.
        min_isr = min(min_isr, replication_factor)
    return {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(min_isr),
        "segment.bytes": str(settings.transaction_state_log_segment_bytes),
        "unclean.leader.election.enable": "false",
    }
