"""TxnOffsetCommit and what becomes of the offsets: pending, committed or forgotten, after a failover, a deletion, an expiry."""

import pytest

from headrace.broker.apis import (
    delete_groups,
    find_coordinator,
    join_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    txn_offset_commit,
    write_txn_markers,
)
from headrace.broker.requests.txn_verification import TxnSupport
from headrace.ids import TopicPartition
from headrace.internal_topics import CONSUMER_OFFSETS
from headrace.records.batch_reader import read_batch
from headrace.records.batch_view import headers_in
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.unit.broker.apis.one_broker import OneBroker, on_broker
from tests.unit.broker.apis.test_write_txn_markers import marker

PRODUCER = 4711
GROUP = "shipping"


class World:
    """A broker with a topic and a group's partition."""

    def __init__(self, broker: OneBroker) -> None:
        self.broker = broker
        self.index = broker.groups.partition_for(GROUP)

    @property
    def log_partition(self) -> TopicPartition:
        return TopicPartition(CONSUMER_OFFSETS, self.index)

    async def start(self) -> None:
        await self.broker.topic("orders", 2)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        await self.broker.ask(find_coordinator, request, 4)
        await self.broker.group_runtime.loaded()

    async def commit(
        self,
        offset: int,
        *,
        index: int = 0,
        epoch: int = 0,
        version: int = 4,
        producer_id: int = PRODUCER,
        topic: str = "orders",
        **member: object,
    ) -> ErrorCode:
        """A transactional commit of one offset."""
        each = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata="m"
        )
        request = TxnOffsetCommitRequest(
            transactional_id="payments",
            group_id=GROUP,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[each])],
        )
        for name, value in member.items():
            setattr(request, name, value)
        answer = await self.broker.ask(txn_offset_commit, request, version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def commit_plainly(self, offset: int) -> ErrorCode:
        each = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[each])],
        )
        answer = await self.broker.ask(offset_commit, request, 8)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool = True, epoch: int = 0, version: int = 0) -> ErrorCode:
        asked = marker(
            (CONSUMER_OFFSETS, [self.index]), commit=commit, epoch=epoch, version=version
        )
        request = WriteTxnMarkersRequest(markers=[asked])
        answer = await self.broker.ask(write_txn_markers, request, 2)
        return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)

    async def fetch(
        self, index: int = 0, *, stable: bool = True, every: bool = False
    ) -> int | ErrorCode | None:
        """The offset, or the error; None if all were asked for and there is none."""
        topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[index])]
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=None if every else topics)
        request = OffsetFetchRequest(groups=[group], require_stable=stable)
        answer = await self.broker.ask(offset_fetch, request, 8)
        found = answer.groups[0].topics
        if not found:
            return None
        (each,) = found[0].partitions
        return ErrorCode(each.error_code) if each.error_code else each.committed_offset

    async def fail_over(self) -> None:
        """The shard loads its records again."""
        partition = self.broker.partitions.get(*self.log_partition)
        assert partition is not None
        self.broker.coordinators.resigned(partition)
        self.broker.coordinators.elected(partition)
        await self.broker.group_runtime.loaded()

    def check(self) -> None:
        for machine in self.broker.group_runtime.machines():
            machine.check()


async def world(broker: OneBroker) -> World:
    made = World(broker)
    await made.start()
    return made


@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_offsets_count_once_the_marker_is_written(commit: bool, fails_over: bool) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        shop = await world(broker)
        assert await shop.commit_plainly(3) is ErrorCode.NONE
        assert await shop.commit(7) is ErrorCode.NONE
        if fails_over:
            await shop.fail_over()
        assert await shop.fetch(stable=False) == 3
        assert await shop.fetch() is ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert await shop.fetch(every=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert await shop.fetch(1) == -1
        assert await shop.end(commit=commit) is ErrorCode.NONE
        assert await shop.end(commit=commit) is ErrorCode.NONE, "a marker may be repeated"
        if fails_over:
            await shop.fail_over()
        assert await shop.fetch() == (7 if commit else 3)
        shop.check()

    story()


@on_broker()
async def test_offsets_of_a_group_that_has_no_others(broker: OneBroker) -> None:
    shop = await world(broker)
    assert await shop.commit(7) is ErrorCode.NONE
    assert await shop.fetch(every=True) is None
    await shop.fail_over()
    shop.check()
    assert await shop.fetch() is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert await shop.end() is ErrorCode.NONE
    assert await shop.fetch(every=True) == 7


@on_broker()
async def test_the_records_are_those_of_kafka(broker: OneBroker) -> None:
    shop = await world(broker)
    await shop.commit(7, epoch=2)
    await shop.end(epoch=3, version=2)
    partition = broker.partitions.get(*shop.log_partition)
    assert partition is not None
    found = partition.read(0, 1 << 20, read_committed=True)
    content = found.records.copy()  # type: ignore[union-attr]
    (_, data), (_, control) = headers_in(content)
    assert (data.producer_id, data.producer_epoch, data.base_sequence) == (PRODUCER, 2, -1)
    assert data.is_transactional
    assert not data.is_control
    (record,) = read_batch(content[: data.size])
    assert record.key == b"\0\1\0\x08shipping\0\6orders\0\0\0\0"
    assert record.value is not None
    assert record.value.startswith(b"\0\4" + (7).to_bytes(8) + b"\xff\xff\xff\xff\2m")
    assert (control.producer_id, control.producer_epoch) == (PRODUCER, 3)
    assert control.is_control
    assert partition.last_stable_offset == 2


@on_broker()
async def test_the_groups_partition_is_verified_or_added(broker: OneBroker) -> None:
    shop = await world(broker)
    assert await shop.commit(1, version=3) is ErrorCode.NONE
    assert await shop.commit(2, version=3) is ErrorCode.NONE
    assert await shop.end(epoch=1, version=2) is ErrorCode.NONE
    assert await shop.commit(3, version=5, epoch=1) is ErrorCode.NONE
    asked = [(asked, support) for _, asked, support in broker.txn_verification.asked]
    place = (shop.log_partition,)
    assert asked == [(place, TxnSupport.BASIC), (place, TxnSupport.IMPLICIT)]


@pytest.mark.parametrize(
    ("said", "version", "answered"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.NETWORK_EXCEPTION, 4, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.PRODUCER_FENCED, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_offsets_that_cannot_be_verified_are_refused(
    said: ErrorCode, version: int, answered: ErrorCode
) -> None:
    @on_broker()
    async def story(broker: OneBroker) -> None:
        shop = await world(broker)
        broker.txn_verification.errors = {shop.log_partition: said}
        assert await shop.commit(7, version=version) is answered
        assert await shop.fetch() == -1

    story()


@on_broker()
async def test_what_no_client_sends_is_refused(broker: OneBroker) -> None:
    shop = await world(broker)
    assert await shop.commit(1, group_id="") is ErrorCode.INVALID_GROUP_ID
    assert await shop.commit(1, producer_id=-1) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await shop.commit(1, epoch=-1) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await shop.commit(1, index=9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await shop.commit(1, index=-1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await shop.commit(1, topic="nowhere") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.txn_verification.asked == []
    assert await shop.commit(1, generation_id=3, member_id="m") is ErrorCode.ILLEGAL_GENERATION
    assert await shop.commit(1, epoch=5) is ErrorCode.NONE
    assert await shop.commit(1, epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await shop.end(epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await shop.end(epoch=5, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    shop.check()


@on_broker()
async def test_a_later_plain_commit_counts_whatever_becomes_of_the_transaction(
    broker: OneBroker,
) -> None:
    shop = await world(broker)
    await shop.commit(7)
    await shop.commit_plainly(9)
    assert await shop.fetch() is ErrorCode.UNSTABLE_OFFSET_COMMIT
    await shop.end()
    assert await shop.fetch() == 9
    await shop.fail_over()
    assert await shop.fetch() == 9


@on_broker()
async def test_deleted_offsets_do_not_come_back_with_the_marker(broker: OneBroker) -> None:
    shop = await world(broker)
    await shop.commit(7)
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="orders", partitions=[partition])
    request = OffsetDeleteRequest(group_id=GROUP, topics=[topic])
    answer = await broker.ask(offset_delete, request, 0)
    assert answer.error_code == ErrorCode.NONE
    await shop.end()
    assert await shop.fetch() == -1
    await shop.commit(8)
    answers = await broker.ask(delete_groups, DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert answers.results[0].error_code == ErrorCode.NONE
    await shop.end()
    for _ in range(2):
        assert await shop.fetch(every=True) is None
        shop.check()
        await shop.fail_over()


@on_broker()
async def test_a_shard_that_loads_asks_the_transaction_coordinator_to_come_again(
    broker: OneBroker,
) -> None:
    shop = await world(broker)
    partition = broker.partitions.get(*shop.log_partition)
    assert partition is not None
    broker.coordinators.resigned(partition)
    assert await shop.end() is ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.coordinators.elected(partition)
    assert await shop.end() is ErrorCode.NOT_LEADER_OR_FOLLOWER, "it loads"
    await broker.group_runtime.loaded()
    assert await shop.end() is ErrorCode.NONE


async def join(broker: OneBroker) -> tuple[str, int]:
    """A static member of the group; its id and generation."""
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        group_instance_id="one",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    joined = await broker.ask(join_group, request, 7)
    assert joined.error_code == ErrorCode.NONE
    return joined.member_id, joined.generation_id


@on_broker()
async def test_a_member_of_an_old_generation_commits_nothing(broker: OneBroker) -> None:
    shop = await world(broker)
    member_id, generation = await join(broker)

    async def commit_as(member: str, of: int, instance: str | None = "one") -> ErrorCode:
        return await shop.commit(1, member_id=member, generation_id=of, group_instance_id=instance)

    assert await commit_as(member_id, generation) is ErrorCode.NONE, "while it rebalances, too"
    assert await commit_as(member_id, generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert await commit_as("somebody", generation) is ErrorCode.FENCED_INSTANCE_ID
    assert await commit_as("somebody", generation, None) is ErrorCode.UNKNOWN_MEMBER_ID
    assert await commit_as(member_id, -1) is ErrorCode.ILLEGAL_GENERATION
    assert await shop.commit(1, version=2) is ErrorCode.NONE, "older clients name no member"
