"""A follower's fetches of many partitions: what is idle is not looked at, and nothing is missed because of that."""

import asyncio
import inspect
from itertools import count
from uuid import UUID

import pytest

from headrace.broker.apis import fetch
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.fetching.fetch_sessions import FetchSession, FetchSessions
from headrace.broker.replicas.replica_throttle import ReplicaThrottle
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry.traffic import Traffic
from headrace.controller.values import PartitionState
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.records.batch_builder import build_batch, records_at
from headrace.replication.fetch_session import FollowerSession
from headrace.replication.following import take
from headrace.replication.leader import LeaderState
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.codec import decode, encode
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from headrace.wire.refusal import Refusal
from tests.unit.broker.apis.one_broker import connection_to

TOPIC_ID = UUID(int=7)
LEADER, FOLLOWER = 1, 2
EPOCH = 3
VERSION = 17
COUNT = 5
MAX_LAG_MS = 30_000


def hosted(disk: MemoryDisk, folder: str, index: int) -> Partition:
    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    where = TopicPartition("t", index)
    log = open_log(disk, f"/{folder}/{where}", where, LogConfig(), now_ms=0, topic_id=TOPIC_ID)
    return Partition(
        where,
        TOPIC_ID,
        log,
        high_watermark=0,
        on_disk_failed=on_disk_failed,
    )


class TwoBrokers:
    """One leads five partitions, the other follows them through one session."""

    def __init__(self) -> None:
        disk = MemoryDisk()
        self.now_ms = 1_000
        self.partitions = PartitionTable()
        self.followed = []
        for index in range(COUNT):
            led = hosted(disk, "leader", index)
            isr = (LEADER, FOLLOWER)
            led.become_leader(
                LEADER, PartitionState(isr, isr, LEADER, EPOCH, 4), now_ms=self.now_ms
            )
            self.partitions.add(led)
            self.followed.append(hosted(disk, "follower", index))
            self.followed[index].become_follower(LEADER, EPOCH)
        self.session = FollowerSession(1_000_000)
        self.sessions = FetchSessions(2, count(1).__next__)
        self.broker_epoch = 10
        settings = BrokerSettings.from_properties({"node.id": "1"}, default_log_dir="/data")
        live_settings = LiveSettings(settings)
        cluster = ClusterView(LEADER, "c", tells_dialled_address=True)
        known = {
            "partitions": self.partitions,
            "cluster": cluster,
            "sessions": self.sessions,
            "live_settings": live_settings,
            "leader_throttle": ReplicaThrottle(
                cluster, lambda: self.now_ms, lambda: 2**63, replicas_key="none"
            ),
            "traffic": Traffic(),
            "clock": lambda: self.now_ms,
            "fetch_max_bytes": 1_000_000,
        }
        needed = inspect.signature(fetch.handle).parameters
        self._given = {name: part for name, part in known.items() if name in needed}

    def led(self, index: int) -> Partition:
        found = self.partitions.get("t", index)
        assert found is not None
        return found

    def leader(self, index: int) -> LeaderState:
        leader = self.led(index).leader
        assert leader is not None
        return leader

    def append(self, index: int) -> None:
        batch = build_batch(records_at(0, 1, [(None, b"value")]))
        self.led(index).append([bytearray(batch)], acks=-1, now_ms=self.now_ms)

    async def ask(self, *, max_wait_ms: int = 0) -> list[int]:
        """One fetch, taken in by the follower. Returns what the answer names."""
        for partition in self.followed:
            self.session.want(partition)
        asked = self.session.ask()
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=self.broker_epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1_000_000,
            session_id=asked.session_id,
            session_epoch=asked.session_epoch,
            topics=asked.topics,
            forgotten_topics_data=asked.forgotten,
        )
        context = RequestContext(1, VERSION, "replica", connection_to())
        received = decode(FetchRequest, VERSION, bytearray(encode(request, VERSION)))
        answer = fetch.handle(received, context, **self._given)  # type: ignore[arg-type]  # by name
        pieces = await answer if inspect.isawaitable(answer) else answer
        response = decode(FetchResponse, VERSION, bytearray(b"".join(pieces)))
        assert self.session.answered(response)
        named = []
        for topic in response.responses:
            for data in topic.partitions:
                named.append(data.partition_index)
                if not data.error_code:
                    take(self.followed[data.partition_index], data, now_ms=self.now_ms)
        return named

    async def settle(self) -> None:
        """Fetch until there is nothing new."""
        while await self.ask():
            pass

    @property
    def active(self) -> list[int]:
        (session,) = self.sessions._sessions.values()
        assert isinstance(session, FetchSession)
        return sorted(index for _, index in session.active)


@pytest.fixture
def brokers() -> TwoBrokers:
    return TwoBrokers()


def test_what_is_idle_is_not_looked_at(
    brokers: TwoBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    read = Partition.read_as_leader

    def noted(
        self: Partition,
        follower: FollowerFetch,
        max_bytes: int,
        *,
        now_ms: int,
        at_least_one: bool = True,
    ) -> PartitionRead | Refusal:
        looked.append(self.topic_partition.partition)
        return read(self, follower, max_bytes, now_ms=now_ms, at_least_one=at_least_one)

    async def story() -> None:
        await brokers.settle()
        assert brokers.active == []
        monkeypatch.setattr(Partition, "read_as_leader", noted)
        brokers.append(3)
        assert await brokers.ask() == [3]
        await brokers.settle()
        assert set(looked) == {3}
        assert brokers.followed[3].high_watermark == 1
        assert brokers.led(3).high_watermark == 1

    asyncio.run(story())


def test_a_fetch_that_waits_hears_of_one_that_was_idle(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        waiting = asyncio.create_task(brokers.ask(max_wait_ms=60_000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        brokers.append(2)
        brokers.append(4)
        async with asyncio.timeout(5):
            assert await waiting == [2, 4]
        assert [each.log.log_end_offset for each in brokers.followed] == [0, 0, 1, 0, 1]

    asyncio.run(story())


def test_one_that_is_not_in_sync_hears_of_it_too(brokers: TwoBrokers) -> None:
    """The high watermark moves with the append then, and is told about first."""

    async def story() -> None:
        alone = PartitionState((LEADER, FOLLOWER), (LEADER,), LEADER, EPOCH, 5, min_isr=1)
        brokers.led(2).isr_decided(alone, now_ms=brokers.now_ms)
        await brokers.settle()
        waiting = asyncio.create_task(brokers.ask(max_wait_ms=60_000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        brokers.append(2)
        async with asyncio.timeout(5):
            assert await waiting == [2]

    asyncio.run(story())


def test_what_grows_between_two_fetches_is_answered_at_once(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        brokers.append(1)
        async with asyncio.timeout(5):
            assert await brokers.ask(max_wait_ms=60_000) == [1]

    asyncio.run(story())


def test_a_moved_high_watermark_is_told(brokers: TwoBrokers) -> None:
    """It may move without this follower: another one was behind."""

    async def story() -> None:
        await brokers.settle()
        partition = brokers.led(0)
        isr = (LEADER, FOLLOWER, 3)
        partition.isr_decided(PartitionState(isr, isr, LEADER, EPOCH, 5), now_ms=brokers.now_ms)
        brokers.append(0)
        await brokers.settle()
        assert (partition.high_watermark, brokers.followed[0].high_watermark) == (0, 0)
        assert brokers.active == []
        other = FollowerFetch(3, 11, 1, EPOCH, EPOCH, 0)
        partition.read_as_leader(other, 1_000, now_ms=brokers.now_ms)
        assert await brokers.ask() == [0]
        assert brokers.followed[0].high_watermark == 1

    asyncio.run(story())


def test_who_fetches_is_caught_up_where_nothing_happens(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        for _ in range(10):
            brokers.now_ms += MAX_LAG_MS // 2
            await brokers.ask()
        brokers.append(0)
        leader = brokers.led(0)
        assert leader.next_isr(now_ms=brokers.now_ms, max_lag_ms=MAX_LAG_MS) is None
        later_ms = brokers.now_ms + MAX_LAG_MS + 1
        assert leader.next_isr(now_ms=later_ms, max_lag_ms=MAX_LAG_MS) == (LEADER,)

    asyncio.run(story())


def test_who_has_stopped_fetching_is_not(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        brokers.now_ms += MAX_LAG_MS + 1
        brokers.append(0)
        isr = brokers.led(0).next_isr(now_ms=brokers.now_ms, max_lag_ms=MAX_LAG_MS)
        assert isr == (LEADER,)

    asyncio.run(story())


def test_a_leader_that_resigns_says_so(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        waiting = asyncio.create_task(brokers.ask(max_wait_ms=60_000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        brokers.led(1).become_follower(FOLLOWER, EPOCH + 1)
        async with asyncio.timeout(5):
            assert await waiting == [1]

    asyncio.run(story())


def test_who_was_put_out_of_the_isr_is_looked_at_again(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        replicas = (LEADER, FOLLOWER)
        brokers.led(0).isr_decided(
            PartitionState(replicas, (LEADER,), LEADER, EPOCH, 5), now_ms=brokers.now_ms
        )
        brokers.now_ms += 1_000
        await brokers.ask()
        isr = brokers.led(0).next_isr(now_ms=brokers.now_ms, max_lag_ms=MAX_LAG_MS)
        assert isr == replicas

    asyncio.run(story())


def test_deleted_records_are_told(brokers: TwoBrokers) -> None:
    async def story() -> None:
        brokers.append(0)
        await brokers.settle()
        assert brokers.led(0).delete_records(1) == 1
        brokers.now_ms += 1_000
        assert await brokers.ask() == [0]
        assert brokers.followed[0].log.log_start_offset == 1

    asyncio.run(story())


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_fetch_that_waits_hears_of_deleted_records_at_once(
    brokers: TwoBrokers, is_idle: bool
) -> None:
    """DeleteRecords waits for the followers, idle ones too."""

    async def story() -> None:
        brokers.append(0)
        await brokers.settle()
        if not is_idle:
            brokers.append(0)
            assert await brokers.ask() == [0]
            assert await brokers.ask() == [0], "the high watermark"
        waiting = asyncio.create_task(brokers.ask(max_wait_ms=60_000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert brokers.led(0).delete_records(1) == 1
        async with asyncio.timeout(5):
            assert await waiting == [0]
        assert brokers.followed[0].log.log_start_offset == 1
        assert brokers.led(0).low_watermark({FOLLOWER}) == 0
        for log in (brokers.led(0).log, brokers.followed[0].log):
            log.checkpointed_start = 1  # only a log start that is on the disk counts
        await brokers.ask()
        assert brokers.led(0).low_watermark({FOLLOWER}) == 1

    asyncio.run(story())


def test_another_incarnation_is_noted_everywhere(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        brokers.broker_epoch = 20
        await brokers.ask()
        assert [brokers.leader(index).broker_epoch(FOLLOWER) for index in range(COUNT)] == [
            20
        ] * COUNT

    asyncio.run(story())


def test_a_session_that_ends_leaves_nothing_behind(brokers: TwoBrokers) -> None:
    async def story() -> None:
        await brokers.settle()
        assert [len(each.append_waiters) for each in brokers.partitions] == [1] * COUNT
        brokers.session.start_over()
        await brokers.settle()
        assert len(brokers.sessions) == 1
        assert [len(each.append_waiters) for each in brokers.partitions] == [1] * COUNT
        (session,) = brokers.sessions._sessions
        brokers.sessions.resolve(
            FetchRequest(session_id=session, session_epoch=-1), uses_ids=True, now_ms=0
        )
        assert [len(each.append_waiters) for each in brokers.partitions] == [0] * COUNT
        assert [len(each.high_watermark_waiters) for each in brokers.partitions] == [0] * COUNT

    asyncio.run(story())


def test_a_follower_takes_the_place_of_a_consumer() -> None:
    def request(replica: int) -> FetchRequest:
        session = FollowerSession(1)
        session.want(TwoBrokers().followed[0])
        state = ReplicaState(replica_id=replica, replica_epoch=1)
        return FetchRequest(
            session_epoch=0,
            replica_state=state,
            topics=session.ask().topics,
        )

    sessions = FetchSessions(2, count(1).__next__)
    consumers = [sessions.resolve(request(-1), uses_ids=True, now_ms=now) for now in (1, 2)]
    assert sessions.resolve(request(-1), uses_ids=True, now_ms=3) is None
    assert isinstance(sessions.resolve(request(5), uses_ids=True, now_ms=4), FetchSession)
    assert isinstance(sessions.resolve(request(6), uses_ids=True, now_ms=5), FetchSession)
    assert sessions.resolve(request(7), uses_ids=True, now_ms=6) is None
    assert sessions.evictions == 2
    first = consumers[0]
    assert isinstance(first, FetchSession)
    gone = FetchRequest(session_id=first.session_id, session_epoch=1)
    error = sessions.resolve(gone, uses_ids=True, now_ms=7)
    assert error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
