"""Produce and InitProducerId: what is taken, what is refused and with which code."""

from struct import pack_into

from headrace.records.batch_builder import BatchOptions, build_batch, build_batch_spanning
from headrace.records.batch_reader import Record
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType, build_marker
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_offsets import ListOffsetsRequest
from headrace.wire.messages.produce import ProduceRequest, TopicProduceData
from tests.differential.requests import (
    ALL,
    LATEST,
    LEADER,
    NOBODY,
    TIME_MS,
    batch,
    by_producer,
    fetch,
    list_offsets,
    produce,
    versions,
)
from tests.differential.script import Script

HOUR_MS = 3_600_000


def _latest(topic: str) -> ListOffsetsRequest:
    return list_offsets(topic, LATEST)


def batches_are_taken_in_every_version(script: Script) -> None:
    topic = script.topic("a")
    topic_id = script.topic_id(topic)
    for version in versions(ProduceRequest):
        for acks in (ALL, LEADER):
            records = batch(b"one", b"two")
            script.ask(produce(topic, records, topic_id=topic_id, acks=acks), version)
    script.ask(fetch(topic, 0), 11)


def every_codec_is_taken(script: Script) -> None:
    topic = script.topic("a")
    for codec in Codec:
        records = batch(b"x" * 500, b"y" * 500, options=BatchOptions(codec=codec))
        script.ask(produce(topic, records), 9)
    script.ask(fetch(topic, 0), 11)


def zstd_needs_version_7(script: Script) -> None:
    topic = script.topic("a")
    for version in (3, 6, 7):
        records = batch(b"x" * 500, options=BatchOptions(codec=Codec.ZSTD))
        script.ask(produce(topic, records), version)


def acks_0_are_not_answered(script: Script) -> None:
    topic = script.topic("a")
    script.tell(produce(topic, batch(b"quiet"), acks=NOBODY), 9)
    script.ask(produce(topic, batch(b"loud")), 9)
    script.ask(_latest(topic), 7)


def wrong_acks_are_refused(script: Script) -> None:
    topic = script.topic("a")
    for acks in (2, -2, 100):
        script.ask(produce(topic, batch(b"x"), acks=acks), 9)
    script.ask(_latest(topic), 7)


def unknown_topics_and_partitions_are_refused(script: Script) -> None:
    topic = script.topic("a")
    topic_id = script.topic_id(topic)
    for version in (3, 8, 9, 12, 13):
        script.ask(produce(topic, batch(b"x"), topic_id=topic_id, partition=9), version)
    for version in (3, 9, 12):
        script.ask(produce(script.name("missing"), batch(b"x")), version)
    script.ask(produce("", batch(b"x")), 13)  # the id of no topic
    script.ask(produce("__consumer_offsets", batch(b"x")), 9)
    script.ask(produce("not/a/name", batch(b"x")), 9)


def broken_batches_are_refused(script: Script) -> None:
    topic = script.topic("a")
    good = batch(b"one", b"two")
    flipped = bytearray(good)
    flipped[-1] ^= 1
    old_magic = bytearray(good)
    old_magic[16] = 1
    cut = good[:-3]
    wrong_count = bytearray(good)
    pack_into(">i", wrong_count, 57, 7)
    not_at_zero = bytearray(good)
    pack_into(">q", not_at_zero, 0, 5)
    for version in (3, 7, 8, 9, 12):
        for records in (
            bytes(flipped),
            bytes(old_magic),
            cut,
            good + good,
            b"",
            bytes(wrong_count),
        ):
            script.ask(produce(topic, records), version)
    script.ask(produce(topic, bytes(not_at_zero)), 9)
    script.ask(_latest(topic), 7)


def control_batches_and_strange_counts_are_refused(script: Script) -> None:
    topic = script.topic("a")
    marker = build_marker(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=TIME_MS
    )
    script.ask(produce(topic, bytes(marker)), 9)
    empty = build_batch_spanning([], 0, 0, BatchOptions())
    script.ask(produce(topic, bytes(empty)), 9)
    gap = build_batch([Record(0, TIME_MS, b"k", b"v"), Record(5, TIME_MS, b"k", b"v")])
    script.ask(produce(topic, bytes(gap)), 9)
    script.ask(_latest(topic), 7)


def large_batches_are_refused(script: Script) -> None:
    topic = script.topic("a", configs={"max.message.bytes": "1000"})
    overhead = len(batch(bytes(900))) - 900
    for size in (1000 - overhead, 1001 - overhead):
        for version in (3, 8, 9):
            script.ask(produce(topic, batch(bytes(size))), version)


def compacted_topics_need_keys(script: Script) -> None:
    topic = script.topic("a", configs={"cleanup.policy": "compact"})
    records = [Record(0, TIME_MS, b"k", b"v"), Record(1, TIME_MS, None, b"v")]
    for codec in (Codec.NONE, Codec.GZIP):
        for version in (3, 8, 9):
            options = BatchOptions(codec=codec)
            script.ask(produce(topic, bytes(build_batch(records, options))), version)
    script.ask(produce(topic, batch(b"with key")), 9)
    script.ask(_latest(topic), 7)


def timestamps_are_bounded(script: Script) -> None:
    bounds = {
        "message.timestamp.before.max.ms": str(HOUR_MS),
        "message.timestamp.after.max.ms": str(HOUR_MS),
    }
    bounded, free = script.topic("bounded", configs=bounds), script.topic("free")
    far_ahead = 4_000_000_000_000
    for topic in (bounded, free):
        for timestamp in (TIME_MS, far_ahead, -1):
            for version in (7, 9):
                script.ask(produce(topic, batch(b"x", timestamp=timestamp)), version)


def log_append_time_is_set_by_the_broker(script: Script) -> None:
    topic = script.topic("a", configs={"message.timestamp.type": "LogAppendTime"})
    for version in (3, 9):
        script.ask(produce(topic, batch(b"x", timestamp=0)), version)
    own_bit = batch(b"x", options=BatchOptions(log_append_time_ms=TIME_MS))
    script.ask(produce(topic, own_bit), 9)
    script.ask(produce(script.topic("create-time"), own_bit), 9)


def topics_can_demand_a_codec(script: Script) -> None:
    for demanded in ("gzip", "zstd", "uncompressed"):
        topic = script.topic(demanded, configs={"compression.type": demanded})
        for codec in (Codec.NONE, Codec.LZ4, Codec.GZIP):
            script.ask(produce(topic, batch(b"x" * 300, options=BatchOptions(codec=codec))), 9)
        script.ask(fetch(topic, 0), 11)


def several_partitions_answer_one_by_one(script: Script) -> None:
    topic = script.topic("a", partitions=2)
    good, bad = produce(topic, batch(b"x")), produce(topic, batch(b"x"), partition=7)
    both = ProduceRequest(
        acks=ALL,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    *good.topic_data[0].partition_data,
                    *bad.topic_data[0].partition_data,
                ],
            )
        ],
    )
    script.ask(both, 9)
    script.ask(ProduceRequest(acks=ALL, timeout_ms=10_000, topic_data=()), 9)


def producer_ids_are_handed_out(script: Script) -> None:
    script.producer_id()
    for version in versions(InitProducerIdRequest):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        script.ask(request, version)
        script.ask(request, version)


def duplicates_get_their_first_offset(script: Script) -> None:
    topic = script.topic("a")
    producer_id = script.producer_id()
    for sequence in (0, 2, 4, 6, 8, 10):
        records = batch(b"x", b"y", options=by_producer(producer_id, sequence))
        script.ask(produce(topic, records), 9)
    for sequence in (10, 4, 2, 0):  # the oldest is no longer remembered
        records = batch(b"x", b"y", options=by_producer(producer_id, sequence))
        script.ask(produce(topic, records), 9)
    part_of_one = batch(b"y", options=by_producer(producer_id, 11))
    script.ask(produce(topic, part_of_one), 9)
    script.ask(_latest(topic), 7)


def gaps_and_old_epochs_are_refused(script: Script) -> None:
    topic = script.topic("a")
    producer_id = script.producer_id()
    steps = [(0, 0), (5, 0), (1, 0), (7, 1), (0, 1), (2, 0), (1, 1), (3, 2), (0, 2), (0, 3)]
    for sequence, epoch in steps:
        for version in (9, 12):
            records = batch(b"x", options=by_producer(producer_id, sequence, epoch=epoch))
            script.ask(produce(topic, records), version)
    script.ask(_latest(topic), 7)


def an_unknown_producer_may_start_anywhere(script: Script) -> None:
    topic = script.topic("a")
    producer_id = script.producer_id()
    for sequence in (17, 18, 20):
        script.ask(produce(topic, batch(b"x", options=by_producer(producer_id, sequence))), 9)


def sequences_wrap(script: Script) -> None:
    topic = script.topic("a")
    producer_id = script.producer_id()
    last = 2**31 - 1
    for sequence, values in ((last - 1, (b"x",)), (last, (b"y", b"z")), (1, (b"w",)), (0, (b"v",))):
        script.ask(produce(topic, batch(*values, options=by_producer(producer_id, sequence))), 9)


def producers_need_sequences_and_epochs(script: Script) -> None:
    topic = script.topic("a")
    producer_id = script.producer_id()
    no_sequence = BatchOptions(producer_id=producer_id, producer_epoch=0, base_sequence=-1)
    no_epoch = BatchOptions(producer_id=producer_id, producer_epoch=-1, base_sequence=0)
    for options in (no_sequence, no_epoch):
        script.ask(produce(topic, batch(b"x", options=options)), 9)


def active_producers_are_described(script: Script) -> None:
    topic = script.topic("a")
    producer_id = script.producer_id()
    script.ask(produce(topic, batch(b"x", b"y", options=by_producer(producer_id, 0))), 9)
    for name, partition in ((topic, 0), (topic, 5), (script.name("missing"), 0)):
        asked = [TopicRequest(name=name, partition_indexes=[partition])]
        script.ask(DescribeProducersRequest(topics=asked), 0)
