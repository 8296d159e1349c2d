"""Whatever a topic's configuration promises reaches its partitions while they run, and goes back when it is deleted."""

import asyncio

import pytest

from headrace.broker.apis import incremental_alter_configs
from headrace.log.log_config import LogConfig
from headrace.settings import definitions
from headrace.settings.definitions.setting import Effect
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.unit.broker.apis.one_broker import OneBroker, one_broker

TOPIC, SET, DELETE = 2, 0, 1
OTHER_VALUES = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.25",
    "internal.segment.bytes": "5000",
    "segment.bytes": "2000000",
    "unclean.leader.election.enable": "true",
    "compression.gzip.level": "3",
    "compression.lz4.level": "4",
    "compression.zstd.level": "5",
}
# A level counts only for its own codec.
BESIDE = {
    f"compression.{codec}.level": {"compression.type": codec} for codec in ("gzip", "lz4", "zstd")
}
# Read from the cluster's state by those who need it, each time.
READ_THERE = {
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "unclean.leader.election.enable",
}
HONOURED = sorted(
    name
    for name, setting in definitions.TOPIC.items()
    if setting.effect is Effect.ACTS and name not in READ_THERE
)


async def alter(broker: OneBroker, configs: list[tuple[str, int, str | None]]) -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=TOPIC,
                resource_name="orders",
                configs=[
                    AlterableConfig(name=name, config_operation=operation, value=value)
                    for name, operation, value in configs
                ],
            )
        ]
    )
    answer = await broker.ask(incremental_alter_configs, request, 1)
    assert [each.error_code for each in answer.responses] == [0], answer


def in_force(broker: OneBroker) -> tuple[LogConfig, int]:
    partition = broker.partitions.get("orders", 0)
    state = broker.cluster.state.partition("orders", 0)
    assert partition is not None
    assert state is not None
    assert all(segment.config is partition.log.config for segment in partition.log.segments)
    return partition.log.config, state.min_isr


@pytest.mark.parametrize("name", HONOURED)
def test_a_change_is_in_force_at_once(name: str) -> None:
    async def scenario() -> None:
        async with one_broker() as broker:
            await broker.topic("orders")
            beside = BESIDE.get(name, {})
            await alter(broker, [(key, SET, value) for key, value in beside.items()])
            before = in_force(broker)
            await alter(broker, [(name, SET, OTHER_VALUES.get(name, "77"))])
            assert in_force(broker) != before
            await alter(broker, [(name, DELETE, None)])
            assert in_force(broker) == before

    asyncio.run(scenario())
