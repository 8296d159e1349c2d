"""Metadata: which topics, by name and id; leaders and listeners; auto-creation; the kept answers."""

import asyncio
from uuid import UUID

import pytest

from headrace.broker.apis import metadata
from headrace.controller.changes import (
    BrokerUnregistered,
    Change,
    ChangeBatch,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from headrace.controller.values import Broker, Endpoint, PartitionState
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.unit.broker.apis.one_broker import (
    BROKER_ID,
    CLUSTER_ID,
    OneBroker,
    connection_to,
    on_broker,
)

NEWEST = 13


def named(*names: str, create: bool = False, **fields: bool) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **fields)


def names(response: MetadataResponse) -> list[str | None]:
    return [topic.name for topic in response.topics]


def only(response: MetadataResponse) -> MetadataResponseTopic:
    (topic,) = response.topics
    return topic


@on_broker()
async def test_null_is_all_topics_and_an_empty_list_none(broker: OneBroker) -> None:
    await broker.topic("a", 2)
    everything = await broker.ask(metadata, MetadataRequest(topics=None), NEWEST)
    assert [len(topic.partitions) for topic in everything.topics] == [2]
    assert names(await broker.ask(metadata, MetadataRequest(topics=[]), NEWEST)) == []
    assert names(await broker.ask(metadata, MetadataRequest(topics=[]), 1)) == []
    assert names(await broker.ask(metadata, MetadataRequest(topics=[]), 0)) == ["a"]


@on_broker()
async def test_brokers_controller_and_cluster(broker: OneBroker) -> None:
    for version in range(NEWEST + 1):
        response = await broker.ask(metadata, named(), version)
        (one,) = response.brokers
        # Without advertised listeners a client is told what it dialled.
        assert (one.node_id, one.host, one.port) == (BROKER_ID, "dialled", 9092)
        assert one.rack == ("here" if version >= 1 else None)
        assert response.controller_id == (BROKER_ID if version >= 1 else -1)
        assert response.cluster_id == (CLUSTER_ID if version >= 2 else None)
        assert response.error_code == 0


@on_broker(advertised_listeners="PLAINTEXT://advertised:19092")
async def test_the_advertised_address_is_told(broker: OneBroker) -> None:
    (one,) = (await broker.ask(metadata, named(), NEWEST)).brokers
    assert (one.host, one.port) == ("advertised", 19092)


@on_broker()
async def test_a_topic_is_described_once_with_its_partitions(broker: OneBroker) -> None:
    topic_id = await broker.topic("a", 2)
    topic = only(await broker.ask(metadata, named("a", "a"), NEWEST))
    assert (topic.error_code, topic.name, topic.topic_id) == (0, "a", topic_id)
    assert not topic.is_internal
    assert [
        (p.error_code, p.partition_index, p.leader_id, p.leader_epoch) for p in topic.partitions
    ] == [(0, 0, BROKER_ID, 0), (0, 1, BROKER_ID, 0)]
    assert [(p.replica_nodes, p.isr_nodes, p.offline_replicas) for p in topic.partitions] == [
        ([BROKER_ID], [BROKER_ID], [])
    ] * 2


@on_broker()
async def test_missing_and_illegal_names(broker: OneBroker) -> None:
    response = await broker.ask(metadata, named("no", "a b", "", "..", "__consumer_offsets"), 12)
    assert [topic.error_code for topic in response.topics] == [3, 17, 17, 17, 3]
    assert [topic.is_internal for topic in response.topics] == [False] * 4 + [True]
    assert not broker.cluster.state.topics


@on_broker()
async def test_by_id_from_version_12_on(broker: OneBroker) -> None:
    topic_id = await broker.topic("a")
    unknown = UUID(int=7)
    asked = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=None, topic_id=topic_id),
            MetadataRequestTopic(name=None, topic_id=unknown),
        ]
    )
    for version in (12, 13):
        found, missing = (await broker.ask(metadata, asked, version)).topics
        assert (found.error_code, found.name) == (0, "a")
        assert (missing.error_code, missing.name, missing.topic_id) == (100, None, unknown)
    for version in (10, 11):
        refused = await broker.ask(metadata, asked, version)
        assert [topic.error_code for topic in refused.topics] == [ErrorCode.INVALID_REQUEST] * 2
        assert refused.brokers == []


@on_broker()
async def test_neither_id_nor_name_is_refused(broker: OneBroker) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    assert only(await broker.ask(metadata, asked, 12)).error_code == ErrorCode.INVALID_REQUEST


@on_broker()
async def test_authorized_operations_only_when_asked_for(broker: OneBroker) -> None:
    await broker.topic("a")
    plain = await broker.ask(metadata, named("a"), 10)
    assert only(plain).topic_authorized_operations == -(2**31)
    assert plain.cluster_authorized_operations == -(2**31)
    asked = named(
        "a", include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    told = await broker.ask(metadata, asked, 10)
    assert only(told).topic_authorized_operations == 3576
    assert told.cluster_authorized_operations == 8096


# ---- creating


@on_broker(num_partitions="1")
async def test_a_topic_comes_into_being_by_being_asked_for(broker: OneBroker) -> None:
    topic = only(await broker.ask(metadata, named("new", create=True), 9))
    assert (topic.error_code, len(topic.partitions)) == (0, 1)
    assert broker.partitions.get("new", 0) is not None


@on_broker()
async def test_old_versions_cannot_decline(broker: OneBroker) -> None:
    assert only(await broker.ask(metadata, named("new"), 3)).error_code == 0


@on_broker(auto_create_topics_enable="false")
async def test_not_where_the_broker_forbids_it(broker: OneBroker) -> None:
    assert only(await broker.ask(metadata, named("new", create=True), 9)).error_code == 3


@on_broker()
async def test_illegal_and_colliding_names_are_not_created(broker: OneBroker) -> None:
    await broker.topic("a.b")
    response = await broker.ask(metadata, named("x y", "a_b", "good", create=True), 9)
    assert [topic.error_code for topic in response.topics] == [17, 3, 0]


@on_broker()
async def test_internal_topics_that_are_not_offered_stay_away(broker: OneBroker) -> None:
    topic = only(await broker.ask(metadata, named("__share_group_state", create=True), 9))
    assert (topic.error_code, topic.is_internal) == (3, True)


@on_broker()
async def test_many_who_want_the_same_topic_cause_one_creation(broker: OneBroker) -> None:
    asked = [broker.ask(metadata, named("new", create=True), 9) for _ in range(5)]
    responses = await asyncio.gather(*asked)
    assert {only(response).error_code for response in responses} == {0}
    assert not broker.topic_creation._under_way


@on_broker()
async def test_who_waits_is_not_left_behind_when_the_first_one_goes(broker: OneBroker) -> None:
    first = asyncio.ensure_future(broker.topic_creation.create(["new"]))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(broker.topic_creation.create(["new"]))
    await asyncio.sleep(0)
    first.cancel()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first


# ---- leaders and listeners


def with_two_brokers(broker: OneBroker) -> None:
    """Broker 2 has a listener that this client does not use, broker 3 is gone."""
    other = Endpoint("OTHER", "two", 1)
    broker.hear_of(Broker(2, 9, (other,)))
    partitions = tuple(
        PartitionState((leader, BROKER_ID), (leader,), leader, 4, partition_epoch=0)
        for leader in (2, 3)
    )
    created = TopicCreated("far", UUID(int=1), partitions)
    broker.cluster.apply(ChangeBatch(1, 0, (created,)))


@on_broker()
async def test_a_leader_that_cannot_be_reached(broker: OneBroker) -> None:
    with_two_brokers(broker)
    for version, error in ((0, 5), (5, 5), (6, 72), (13, 72)):
        response = await broker.ask(metadata, named("far"), version)
        assert [one.node_id for one in response.brokers] == [BROKER_ID]
        topic = only(response)
        assert topic.error_code == 0
        assert [p.error_code for p in topic.partitions] == [error, 5]
        assert [p.leader_id for p in topic.partitions] == [-1, -1]
    assert [p.offline_replicas for p in topic.partitions] == [[2], [3]]
    assert [p.leader_epoch for p in topic.partitions] == [4, 4]


@on_broker()
async def test_version_0_hears_only_of_replicas_that_it_can_reach(broker: OneBroker) -> None:
    with_two_brokers(broker)
    here = PartitionState((BROKER_ID, 3), (BROKER_ID, 3), BROKER_ID, 5, partition_epoch=1)
    broker.cluster.apply(ChangeBatch(1, 0, (PartitionChanged("far", 1, here),)))
    partition = only(await broker.ask(metadata, named("far"), 0)).partitions[1]
    assert partition.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert (partition.replica_nodes, partition.isr_nodes) == ([BROKER_ID], [BROKER_ID])
    partition = only(await broker.ask(metadata, named("far"), 1)).partitions[1]
    assert (partition.error_code, partition.replica_nodes) == (0, [BROKER_ID, 3])


@on_broker()
async def test_a_controller_out_of_reach_is_replaced_by_the_broker_itself(
    broker: OneBroker,
) -> None:
    broker.cluster.state.controller_id = 3
    assert (await broker.ask(metadata, named(), 9)).controller_id == BROKER_ID


# ---- kept answers


@on_broker()
async def test_kept_answers_follow_the_cluster_and_the_client(broker: OneBroker) -> None:
    everything = MetadataRequest(topics=None)
    await broker.topic("a")
    first = await broker.ask(metadata, everything, NEWEST)
    assert await broker.ask(metadata, everything, NEWEST) == first
    elsewhere = connection_to()
    elsewhere.local_address = ("elsewhere", 9092)
    other = await broker.ask(metadata, everything, NEWEST, connection=elsewhere)
    assert other.brokers[0].host == "elsewhere"
    asked = MetadataRequest(topics=None, include_topic_authorized_operations=True)
    assert only(await broker.ask(metadata, asked, NEWEST)).topic_authorized_operations == 3576
    await broker.topic("b")
    assert names(await broker.ask(metadata, everything, NEWEST)) == ["a", "b"]


@on_broker()
async def test_a_kept_answer_is_the_one_that_names_would_get(broker: OneBroker) -> None:
    def change(*changes: Change) -> None:
        broker.cluster.apply(ChangeBatch(1, 0, changes))

    async def compare() -> None:
        present = list(broker.cluster.state.topics)
        for version in range(NEWEST + 1):
            everything = MetadataRequest(topics=None if version else [])
            kept = await broker.ask(metadata, everything, version)
            asked = await broker.ask(metadata, named(*present), version)
            assert kept == asked

    for count in range(200):  # more than one byte of a varint can count
        partition = PartitionState((BROKER_ID,), (BROKER_ID,), BROKER_ID, 0, partition_epoch=0)
        change(TopicCreated(f"t{count}", UUID(int=count + 1), (partition,)))
    await compare()
    changed = PartitionState((BROKER_ID,), (BROKER_ID,), BROKER_ID, 3, partition_epoch=1)
    change(PartitionChanged("t7", 0, changed))
    await compare()
    change(PartitionsAdded("t7", 1, (partition,)), TopicDeleted("t8", UUID(int=9), ()))
    await compare()
    broker.hear_of(Broker(2, 9, (Endpoint("OTHER", "two", 1),)))
    away = PartitionState((2,), (2,), 2, 9, partition_epoch=9)
    change(PartitionChanged("t9", 0, away))
    await compare()
    change(BrokerUnregistered(2))
    await compare()


@on_broker()
async def test_only_so_many_answers_are_kept(broker: OneBroker) -> None:
    for port in range(100):
        connection = connection_to()
        connection.local_address = ("here", port)
        response = await broker.ask(
            metadata, MetadataRequest(topics=None), NEWEST, connection=connection
        )
        assert response.brokers[0].port == port
    assert len(broker.metadata_cache) == 16
