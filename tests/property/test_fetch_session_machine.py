"""A follower's fetch session: whatever happens, what the leader remembers is what the follower wants."""

from itertools import count
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from headrace.broker.fetching.fetch_sessions import FetchSession, FetchSessions
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.replication.fetch_session import FollowerSession
from headrace.replication.following import question
from headrace.replication.partition import Partition
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.codec import decode, encode
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse

MAX_BYTES = 1_000
VERSION = 17
LEADER = 2
TOPIC_IDS = {"a": UUID(int=1), "b": UUID(int=2)}
PLACES = [TopicPartition(topic, index) for topic in TOPIC_IDS for index in range(3)]
SOME = st.sets(st.sampled_from(PLACES), min_size=1)
ONE = st.sampled_from(PLACES)

Asks = dict[tuple[UUID, int], FetchPartition]


def hosted(log: PartitionLog) -> Partition:
    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    where = log.topic_partition
    return Partition(
        where,
        TOPIC_IDS[where.topic],
        log,
        high_watermark=0,
        on_disk_failed=on_disk_failed,
    )


class AnySession(RuleBasedStateMachine):
    """One follower, one leader with room for two sessions, six partitions."""

    def __init__(self) -> None:
        super().__init__()
        disk = MemoryDisk()
        self.partitions = {}
        for where in PLACES:
            log = open_log(
                disk, f"/d/{where}", where, LogConfig(), now_ms=0, topic_id=TOPIC_IDS[where.topic]
            )
            self.partitions[where] = hosted(log)
            self.partitions[where].become_follower(LEADER, 0)
        self.wanted = set(PLACES)
        self.follower = FollowerSession(MAX_BYTES)
        for partition in self.partitions.values():
            self.follower.want(partition)
        self.leader = FetchSessions(2, count(1).__next__)
        self.now_ms = 0
        self.told: Asks = {}  # as of the last answer
        self.must_be_full = True

    # ---- what happens to the follower

    @rule(where=ONE)
    def it_grows(self, where: TopicPartition) -> None:
        partition = self.partitions[where]
        end_offset = partition.log.log_end_offset
        batch = build_batch(
            records_at(end_offset, 1, [(None, b"v")]),
            BatchOptions(leader_epoch=partition.leader_epoch),
        )
        partition.append_as_follower(
            bytes(batch), high_watermark=end_offset, log_start_offset=0, now_ms=1
        )
        self.follower.mark_changed(partition)

    @rule(where=ONE, cut=st.integers(1, 3))
    def it_is_cut(self, where: TopicPartition, cut: int) -> None:
        log = self.partitions[where].log
        offset = max(log.log_start_offset, log.log_end_offset - cut)
        self.partitions[where].truncate_as_follower(offset, now_ms=1)
        self.follower.mark_changed(self.partitions[where])

    @rule(where=ONE)
    def its_oldest_record_is_deleted(self, where: TopicPartition) -> None:
        log = self.partitions[where].log
        log.advance_log_start(min(log.log_start_offset + 1, log.log_end_offset))
        self.follower.mark_all_changed()  # nobody tells which

    @rule(where=ONE)
    def there_is_another_epoch(self, where: TopicPartition) -> None:
        partition = self.partitions[where]
        partition.become_follower(LEADER, partition.leader_epoch + 1)
        self.follower.mark_changed(partition)

    @rule(where=ONE)
    def it_is_hosted_anew(self, where: TopicPartition) -> None:
        before = self.partitions[where]
        self.partitions[where] = hosted(before.log)
        self.partitions[where].become_follower(LEADER, before.leader_epoch)
        self.follower.leave(before)
        if where in self.wanted:
            self.follower.want(self.partitions[where])

    @rule(wanted=SOME)
    def others_are_wanted(self, wanted: set[TopicPartition]) -> None:
        self.wanted = wanted
        for where, partition in self.partitions.items():
            if where in wanted:
                self.follower.want(partition)
            else:
                self.follower.leave(partition)

    # ---- what happens to the leader

    @rule()
    def other_sessions_take_its_place(self) -> None:
        self.now_ms += 1_000_000
        for _ in range(2):
            ask = FetchRequest(session_epoch=0, topics=self._request([PLACES[0]]).topics)
            self.leader.resolve(ask, uses_ids=True, now_ms=self.now_ms)

    @rule()
    def it_starts_anew(self) -> None:
        """Its connections are lost with it, and its numbers begin again: they may be another's by now."""
        self.leader = FetchSessions(2, count(1).__next__)
        self.follower.start_over()
        self.must_be_full = True

    # ---- what happens to requests

    @rule(change=st.sampled_from(["none", "nobody hears it", "nobody hears the answer"]))
    def a_request_is_made(self, change: str) -> None:
        request = self._next()
        if change != "nobody hears it":
            heard = self.leader.resolve(request, uses_ids=True, now_ms=self.now_ms)
            if change == "none":
                self._answer(request, heard)
                return
        self.follower.start_over()
        self.must_be_full = True

    @precondition(lambda self: not self.must_be_full)
    @rule()
    def a_request_is_repeated_behind_our_back(self) -> None:
        """The leader counts on; the follower must hear that it is behind."""
        request = self._next()
        self.leader.resolve(request, uses_ids=True, now_ms=self.now_ms)
        heard = self.leader.resolve(request, uses_ids=True, now_ms=self.now_ms)
        self._answer(request, heard)

    def _next(self) -> FetchRequest:
        """What is sent, and that it says no more than it must."""
        asked = self.follower.ask()
        request = FetchRequest(
            session_id=asked.session_id,
            session_epoch=asked.session_epoch,
            topics=asked.topics,
            forgotten_topics_data=asked.forgotten,
        )
        assert (asked.session_epoch == 0) >= self.must_be_full
        if asked.session_epoch == 0:
            self.told = {}
        now = self._questions()
        news = {place: ask for place, ask in now.items() if self.told.get(place) != ask}
        said = {
            (topic.topic_id, ask.partition): ask
            for topic in request.topics
            for ask in topic.partitions
        }
        # One that is made anew may be named although it says the same.
        assert said.items() >= news.items()
        assert now.items() >= said.items()
        return decode(FetchRequest, VERSION, bytearray(encode(request, VERSION)))

    def _answer(self, request: FetchRequest, heard: FetchSession | ErrorCode | None) -> None:
        if isinstance(heard, ErrorCode):
            assert not self.follower.answered(FetchResponse(error_code=heard))
            self.must_be_full = True
            return
        session_id = 0 if heard is None else heard.session_id
        assert self.follower.answered(FetchResponse(session_id=session_id))
        self.must_be_full = heard is None
        self.told = self._questions()
        if heard is not None:
            remembered = {
                (topic_id, index): wanted.ask
                for ((_, topic_id), index), wanted in heard.partitions.items()
            }
            assert remembered == self.told
        for where, partition in self.partitions.items():
            found = self.follower.asked(partition.topic_id, where.partition)
            wanted = (partition, partition.leader_epoch) if where in self.wanted else None
            assert found == wanted

    def _questions(self) -> Asks:
        return {
            (partition.topic_id, where.partition): question(partition, max_bytes=MAX_BYTES)
            for where, partition in self.partitions.items()
            if where in self.wanted
        }

    def _request(self, places: list[TopicPartition]) -> FetchRequest:
        session = FollowerSession(MAX_BYTES)
        for where in places:
            session.want(self.partitions[where])
        return FetchRequest(topics=session.ask().topics)


TestAnySession = AnySession.TestCase
TestAnySession.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
