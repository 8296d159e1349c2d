"""A producer with five batches in flight, as librdkafka works, and a partition whose leader changes all the time.

Two brokers hold the partition and are always in sync. Everybody learns of a new leader late: the producer, the new leader, the
old one. The producer sends what was refused again, in order. After OUT_OF_ORDER_SEQUENCE_NUMBER it starts a new producer epoch,
and after an acknowledgement it takes all earlier batches for acknowledged. Each record must be in the log once, in order.
"""

import asyncio
from bisect import insort
from collections import deque
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.records.batch_reader import read_batch
from headrace.records.batch_view import headers_in
from headrace.replication.follower import next_fetch, truncation_offset
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch
from headrace.wire.codec import decode
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.produce import ProduceResponse
from headrace.wire.refusal import Refusal
from tests.property.produce_world import FOLLOWED, Asked, State, World
from tests.unit.broker.apis.one_broker import NOW_MS, connection_to

PRODUCER = 9
VERSION = 9
IN_FLIGHT = 5
RECORDS = 40
STEPS = 600
BROKERS = (0, 1)


class Broker:
    """One broker, which calls itself 1 and the other 2, and the producer's connection to it."""

    def __init__(self) -> None:
        self._world = World()
        partition = self._world.partitions.get(FOLLOWED, 0)
        assert partition is not None
        self.partition: Partition = partition
        self.connection = connection_to()
        self.requests: deque[bytearray] = deque()
        self.answers: deque[asyncio.Future[bytes]] = deque()

    def learn(self, epoch: int, *, is_leader: bool) -> None:
        if epoch <= self.partition.leader_epoch:
            return
        if is_leader:
            self.partition.become_leader(1, State((1, 2), (1, 2), epoch), now_ms=NOW_MS)
        else:
            self.partition.become_follower(2, epoch)

    def serve(self) -> None:
        if self.requests:
            answer = self._world.ask(self.connection, self.requests.popleft())
            if isinstance(answer, bytes):
                done = asyncio.get_running_loop().create_future()
                done.set_result(answer)
                answer = done
            assert isinstance(answer, asyncio.Future)
            self.answers.append(answer)

    def fetch_from(self, leader: "Broker") -> None:
        here, there = self.partition, leader.partition
        if here.is_leader:
            return
        epochs, end_offset = here.log.leader_epochs, here.log.log_end_offset
        found = there.read_as_leader(
            FollowerFetch(
                replica_id=2,
                broker_epoch=1,
                fetch_offset=end_offset,
                current_leader_epoch=here.leader_epoch,
                last_fetched_epoch=next_fetch(epochs, end_offset).last_fetched_epoch,
            ),
            200,
            now_ms=NOW_MS,
        )
        if isinstance(found, Refusal):
            return
        if found.diverging is not None:
            cut = truncation_offset(found.diverging, epochs, end_offset)
            here.truncate_as_follower(cut, now_ms=NOW_MS)
            return
        here.append_as_follower(
            found.records.copy(),
            high_watermark=found.high_watermark,
            log_start_offset=0,
            now_ms=NOW_MS,
        )

    def values(self) -> list[int]:
        log = self.partition.log
        found = log.read(0, 1 << 20, log.log_end_offset)
        assert not isinstance(found, Refusal)
        data = found.copy()
        return [
            int(record.value or b"")
            for position, header in headers_in(memoryview(data))
            for record in read_batch(data[position : position + header.size])
        ]


class Producer:
    """Sends the numbers from 0 on, a batch for each; as far as librdkafka decides what is sent when.

    A thread of librdkafka that handles a refusal lowers the count of batches in flight first, and puts the batch back into the
    queue later. If that was the last batch in flight and the partition has another leader by then, the thread of that leader
    sends what comes behind it in between. So one batch at a time can be overtaken, at a change of leader. Here it is back in the
    queue before one that overtook it is acknowledged: a thread that is held up for longer than such a round trip makes
    librdkafka send a batch again that no broker need still know, which ends in its fatal error with Apache Kafka, too.
    """

    def __init__(self, chance: Random, brokers: tuple[Broker, Broker]) -> None:
        self._chance = chance
        self._brokers = brokers
        self._correlation_id = 0
        self._in_flight: deque[tuple[int, int]] = deque()  # number, broker
        self._to_send = list(range(RECORDS))
        self._overtakable: tuple[int, int] | None = None  # refused, and not yet in the queue again
        self._must_drain = False
        self._must_start_epoch = False
        self._first_of_epoch = 0
        self.epoch = 0
        self.leader = 0
        self.acknowledged = 0  # all numbers below are
        self.has_failed = False

    def send(self) -> None:
        if self._chance.random() < 0.3 or not self._is_overtakable():
            self._put_back()
        if any(broker != self.leader for _, broker in self._in_flight):
            return
        if self._in_flight and (self._must_drain or self._must_start_epoch):
            return
        self._must_drain = False
        if self._must_start_epoch:
            self._put_back()
            self._must_start_epoch = self._must_drain = False
            self.epoch += 1
            self._first_of_epoch = self.acknowledged
        if self._to_send and len(self._in_flight) < IN_FLIGHT:
            self._send(self._to_send.pop(0))

    def _send(self, number: int) -> None:
        self._correlation_id += 1
        asked = Asked(
            VERSION,
            -1,
            "a",
            ((FOLLOWED, 0),),
            (b"%d" % number,),
            0,
            (PRODUCER, number - self._first_of_epoch),
            "",
            producer_epoch=self.epoch,
        )
        self._brokers[self.leader].requests.append(asked.frame(self._correlation_id))
        self._in_flight.append((number, self.leader))

    def _is_overtakable(self) -> bool:
        """Whether the thread that handles a refusal is not the one that sends."""
        return self._overtakable is not None and self._overtakable[1] != self.leader

    def _put_back(self) -> None:
        """The thread that handles a refusal comes to its end."""
        if self._overtakable is not None:
            insort(self._to_send, self._overtakable[0])
            self._must_drain = True
            self._overtakable = None

    async def receive(self, broker: int) -> None:
        answers = self._brokers[broker].answers
        for _ in range(3):
            await asyncio.sleep(0)
        if not answers or not answers[0].done():
            return
        body = bytearray(answers.popleft().result()[9:])
        result = decode(ProduceResponse, VERSION, body).responses[0].partition_responses[0]
        self._put_back()
        number, _ = self._in_flight.popleft()
        if result.error_code == ErrorCode.NONE:
            self.acknowledged = max(self.acknowledged, number + 1)
            self._to_send = [each for each in self._to_send if each >= self.acknowledged]
            return
        if result.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.has_failed = self.has_failed or number <= self.acknowledged
            self._must_start_epoch = True
        self._overtakable = number, broker
        if self._in_flight or not self._is_overtakable():
            self._put_back()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
@example(28)  # a batch that overtakes after others of the same epoch
@example(1907)  # the first batch of all is overtaken
@example(3118)  # six batches without an acknowledgement
def test_each_record_is_written_once_and_in_order(seed: int) -> None:
    asyncio.run(play(Random(seed)))


async def play(chance: Random) -> None:
    brokers = Broker(), Broker()
    producer = Producer(chance, brokers)
    leader, epoch = 0, 5
    change_rate = chance.choice((0.02, 0.05, 0.1))
    brokers[1].learn(epoch, is_leader=False)
    brokers[0].learn(epoch, is_leader=True)
    for step in range(100 * STEPS):
        if producer.acknowledged == RECORDS or producer.has_failed:
            break
        action = chance.randrange(6)
        one = chance.choice(BROKERS)
        if step < STEPS and chance.random() < change_rate:
            leader, epoch = chance.choice(BROKERS), epoch + 1
        elif action == 0:
            brokers[one].learn(epoch, is_leader=one == leader)
        elif action == 1:
            producer.leader = leader
        elif action == 2:
            brokers[one].serve()
        elif action == 3:
            brokers[one].fetch_from(brokers[1 - one])
        elif action == 4:
            await producer.receive(one)
        else:
            for _ in range(chance.randrange(1, 4)):
                producer.send()
    assert not producer.has_failed
    assert producer.acknowledged == RECORDS
    assert brokers[leader].values() == list(range(RECORDS))
    assert producer.epoch == 0
