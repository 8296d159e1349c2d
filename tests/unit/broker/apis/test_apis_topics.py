"""CreateTopics, DeleteTopics, CreatePartitions: through a real controller. Codes and texts are those of Kafka 4.3."""

import asyncio
from uuid import UUID

from headrace.broker.apis import create_partitions, create_topics, delete_topics
from headrace.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from headrace.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.unit.broker.apis.one_broker import OneBroker, on_broker


def new(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


async def create(
    broker: OneBroker,
    *topics: CreatableTopic,
    version: int = 7,
    timeout_ms: int = 1000,
    validate_only: bool = False,
) -> dict[str, CreatableTopicResult]:
    request = CreateTopicsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
    )
    response = await broker.ask(create_topics, request, version)
    results = {result.name: result for result in response.topics}
    assert len(results) == len(response.topics)
    return results


@on_broker()
async def test_the_answer_tells_more_in_newer_versions(broker: OneBroker) -> None:
    for version in range(2, 8):
        result = (await create(broker, new(f"t{version}", 3), version=version))[f"t{version}"]
        assert (result.error_code, result.error_message) == (0, None)
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (3, 1)
        if version >= 7:
            assert result.topic_id == broker.cluster.state.topics["t7"].topic_id
    assert len(broker.partitions) == 18


@on_broker()
async def test_configs_in_the_answer(broker: OneBroker) -> None:
    result = (await create(broker, new("a", cleanup_policy="compact")))["a"]
    assert result.configs is not None
    shown = {config.name: (config.value, config.config_source) for config in result.configs}
    assert shown["cleanup.policy"] == ("compact", 1)
    assert shown["compression.type"] == ("producer", 5)
    assert [config.name for config in result.configs] == sorted(shown)


@on_broker()
async def test_defaults_and_manual_assignments(broker: OneBroker) -> None:
    manual = new("manual", -1, -1)
    manual.assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (1, 0)
    ]
    results = await create(broker, new("default", -1, -1), manual)
    assert results["default"].num_partitions == 1
    assert results["manual"].num_partitions == 2


@on_broker()
async def test_validating_creates_nothing(broker: OneBroker) -> None:
    result = (await create(broker, new("a", 2), validate_only=True))["a"]
    assert (result.error_code, result.num_partitions) == (0, 2)
    assert not broker.cluster.state.topics


@on_broker()
async def test_each_topic_is_refused_for_itself(broker: OneBroker) -> None:
    await broker.topic("old")
    results = await create(
        broker,
        new("old"),
        new("a b"),
        new("three", 1, 3),
        new("none", 0),
        new("unknown", nonsense="1"),
        new("null", retention_ms=None),
        new("text", retention_ms="abc"),
        new("twice"),
        new("twice"),
        new("__cluster_metadata"),
        new("good"),
    )
    assert {name: result.error_code for name, result in results.items()} == {
        "old": 36,
        "a b": 17,
        "three": 38,
        "none": 37,
        "unknown": 40,
        "null": 40,
        "text": 40,
        "twice": 42,
        "__cluster_metadata": 42,
        "good": 0,
    }
    assert all(result.error_message for result in results.values() if result.error_code)
    assert results["old"].error_message == "Topic 'old' already exists."
    assert results["text"].error_message == (
        "Invalid value abc for configuration retention.ms: Not a number of type LONG"
    )
    assert set(broker.cluster.state.topics) == {"old", "good"}


@on_broker()
async def test_no_time_means_nothing_is_done(broker: OneBroker) -> None:
    await broker.topic("old")
    for timeout_ms in (0, -1):
        result = (await create(broker, new("a"), timeout_ms=timeout_ms))["a"]
        assert (result.error_code, result.error_message) == (7, None)
        asked = DeleteTopicsRequest(topic_names=["old"], timeout_ms=timeout_ms)
        assert (await broker.ask(delete_topics, asked, 5)).responses[0].error_code == 7
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="old", count=2, assignments=None)],
            timeout_ms=timeout_ms,
        )
        assert (await broker.ask(create_partitions, grown, 3)).results[0].error_code == 7
    assert set(broker.cluster.state.topics) == {"old"}


# ---- who is not the controller


@on_broker()
async def test_another_broker_is_the_controller(broker: OneBroker) -> None:
    broker.controller._resign()
    assert (await create(broker, new("a")))["a"].error_code == 41
    deleted = DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000)
    assert (await broker.ask(delete_topics, deleted, 5)).responses[0].error_code == 41


# ---- deleting


def told(results: list[DeletableTopicResult]) -> set[tuple[str | None, int, str | None]]:
    return {(result.name, result.error_code, result.error_message) for result in results}


async def delete(
    broker: OneBroker, *wanted: str | UUID | tuple[str, UUID] | None
) -> list[DeletableTopicResult]:
    topics = []
    for one in wanted:
        match one:
            case str():
                topics.append(DeleteTopicState(name=one))
            case UUID():
                topics.append(DeleteTopicState(topic_id=one))
            case (name, topic_id):
                topics.append(DeleteTopicState(name=name, topic_id=topic_id))
            case None:
                topics.append(DeleteTopicState())
    request = DeleteTopicsRequest(topics=topics, timeout_ms=1000)
    return list((await broker.ask(delete_topics, request, 6)).responses)


@on_broker()
async def test_topics_go_by_name_and_by_id(broker: OneBroker) -> None:
    first, second = await broker.topic("a"), await broker.topic("b")
    results = await delete(broker, "a", second, "zz", UUID(int=5))
    assert [(r.name, r.topic_id, r.error_code) for r in results] == [
        ("a", first, 0),
        ("zz", UUID(int=0), 3),
        ("b", second, 0),
        (None, UUID(int=5), 100),
    ]
    assert all(bool(r.error_message) == bool(r.error_code) for r in results)
    assert not broker.cluster.state.topics
    assert len(broker.partitions) == 0


@on_broker()
async def test_by_name_in_old_versions(broker: OneBroker) -> None:
    for version in range(1, 6):
        await broker.topic("a")
        request = DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=1000)
        response = await broker.ask(delete_topics, request, version)
        assert [(r.name, r.error_code) for r in response.responses] == [("a", 0), ("b", 3)]


@on_broker()
async def test_unclear_wishes_delete_nothing(broker: OneBroker) -> None:
    topic_id = await broker.topic("a")
    both_ways = "The provided topic name maps to an ID that was already supplied."
    assert told(await delete(broker, "a", topic_id)) == {("a", 42, both_ways)}
    assert told(await delete(broker, topic_id, "a")) == {("a", 42, both_ways)}
    assert told(await delete(broker, "a", "a")) == {("a", 42, "Duplicate topic name.")}
    assert told(await delete(broker, topic_id, topic_id)) == {(None, 42, "Duplicate topic id.")}
    assert told(await delete(broker, ("a", topic_id))) == {
        ("a", 42, "You may not specify both topic name and topic id.")
    }
    assert told(await delete(broker, None)) == {
        (None, 42, "Neither topic name nor id were specified.")
    }
    assert "a" in broker.cluster.state.topics


@on_broker(delete_topic_enable="false")
async def test_deletion_can_be_forbidden(broker: OneBroker) -> None:
    await broker.topic("a")
    for version, error in ((2, 42), (3, 73), (5, 73)):
        request = DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000)
        response = await broker.ask(delete_topics, request, version)
        assert response.responses[0].error_code == error
    assert "a" in broker.cluster.state.topics


# ---- more partitions


@on_broker()
async def test_topics_grow(broker: OneBroker) -> None:
    await broker.topic("a")
    await broker.topic("b", 5)
    one = CreatePartitionsAssignment(broker_ids=[1])
    asked = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name="a", count=3, assignments=[one, one]),
            CreatePartitionsTopic(name="b", count=5, assignments=None),
            CreatePartitionsTopic(name="zz", count=2, assignments=None),
            CreatePartitionsTopic(name="b2", count=2, assignments=None),
            CreatePartitionsTopic(name="b2", count=2, assignments=None),
        ],
        timeout_ms=1000,
    )
    response = await broker.ask(create_partitions, asked, 3)
    assert {(r.name, r.error_code, r.error_message) for r in response.results} == {
        ("a", 0, None),
        ("b", 37, "Topic already has 5 partition(s)."),
        ("zz", 3, None),
        ("b2", 42, "Duplicate topic name."),
    }
    assert len(broker.cluster.state.topics["a"].partitions) == 3


@on_broker()
async def test_validated_growth_does_not_happen(broker: OneBroker) -> None:
    await broker.topic("a")
    wanted = CreatePartitionsTopic(name="a", count=2, assignments=None)
    asked = CreatePartitionsRequest(topics=[wanted], validate_only=True, timeout_ms=1000)
    response = await broker.ask(create_partitions, asked, 0)
    assert response.results[0].error_code == 0
    assert len(broker.cluster.state.topics["a"].partitions) == 1


@on_broker()
async def test_a_controller_that_does_not_answer_in_time(broker: OneBroker) -> None:
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def hang(_: object) -> None:
        await never

    broker.controller.ask = hang  # type: ignore[method-assign, assignment]  # a controller that is stuck
    assert (await create(broker, new("a"), timeout_ms=1))["a"].error_code == 7
