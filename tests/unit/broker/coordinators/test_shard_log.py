"""What a coordinator's shard finds in its partition when the disk or its content is bad."""

import pytest

from headrace.broker.coordinators.shard_log import PartitionShardLog, ShardLogUnreadable
from headrace.coordinator.contract import TxnEntry, TxnWriter
from headrace.errors import CorruptBatch
from headrace.log.producers.producer_state import NOT_VERIFIED
from headrace.records.control_batch import TxnMarker
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused
from tests.unit.broker.apis.one_broker import LOG_DIR, NOW_MS, OneBroker, on_broker

LOG = f"{LOG_DIR}/orders-0/00000000000000000000.log"


async def shard_log(broker: OneBroker) -> PartitionShardLog:
    await broker.topic("orders")
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    log = PartitionShardLog(partition, codec=0)
    log.append([(b"key", b"value")], NOW_MS)
    return log


@on_broker()
async def test_a_damaged_batch_is_told_with_its_offset(broker: OneBroker) -> None:
    log = await shard_log(broker)
    assert [*log.read_from_start()] == [[(0, b"key", b"value")]]
    content = broker.disk.read_bytes(LOG)
    assert content is not None
    broker.disk.open(LOG).truncate(len(content) - 1)
    broker.disk.open(LOG).append(bytes([content[-1] ^ 1]))
    with pytest.raises(CorruptBatch, match="offset 0"):
        [*log.read_from_start()]


@on_broker()
async def test_a_bad_sector_takes_the_directory_offline(broker: OneBroker) -> None:
    log = await shard_log(broker)
    broker.disk.bad_bytes.add((LOG, 10))
    with pytest.raises(Refused) as refused:
        [*log.read_from_start()]
    assert refused.value.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert list(broker.log_dirs.offline) == [LOG_DIR]


@on_broker()
async def test_a_load_goes_on_where_the_log_starts_after_records_were_deleted(
    broker: OneBroker,
) -> None:
    log = await shard_log(broker)
    value = bytes(40_000)  # so that a chunk holds one or two batches
    for key in (b"1", b"2", b"3", b"4", b"5"):
        log.append([(key, value)], NOW_MS)
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    chunks = log.read_from_start()
    found = [entry[1] for entry in next(chunks)]
    assert b"4" not in found
    assert partition.delete_records(4) == 4
    found += [entry[1] for chunk in chunks for entry in chunk]
    assert found[-2:] == [b"4", b"5"]


@on_broker()
async def test_a_refused_read_is_not_taken_for_the_end_of_the_log(broker: OneBroker) -> None:
    log = await shard_log(broker)
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    refusal = Refusal(ErrorCode.OFFSET_OUT_OF_RANGE, "orders-0 has other offsets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(partition.log), "read", lambda *_, **__: refusal)
        with pytest.raises(ShardLogUnreadable, match="OFFSET_OUT_OF_RANGE"):
            [*log.read_from_start()]


@on_broker()
async def test_records_of_transactions_and_markers_are_told_as_such(broker: OneBroker) -> None:
    log = await shard_log(broker)
    writer = TxnWriter(7, 2, NOT_VERIFIED)
    assert log.append([(b"a", b"1"), (b"b", None)], NOW_MS, writer) == 3
    marker = TxnMarker(7, 2, 5, is_commit=False)
    assert log.append_marker(marker, NOW_MS) == 4
    entries = [entry for chunk in log.read_from_start() for entry in chunk]
    assert entries[1:] == [TxnEntry(1, b"a", b"1", 7), TxnEntry(2, b"b", None, 7), (3, marker)]
    partition = broker.partitions.get("orders", 0)
    assert partition is not None
    aborted = partition.log.aborted_transactions(0, 4)
    assert [(each.producer_id, each.first_offset, each.last_offset) for each in aborted] == [
        (7, 1, 3)
    ]


@on_broker()
async def test_who_is_fenced_or_has_no_open_transaction_writes_nothing(broker: OneBroker) -> None:
    log = await shard_log(broker)
    with pytest.raises(Refused) as refused:
        log.append([(b"a", b"1")], NOW_MS, TxnWriter(7, 2))
    assert refused.value.error_code == ErrorCode.INVALID_TXN_STATE
    log.append([(b"a", b"1")], NOW_MS, TxnWriter(7, 2, NOT_VERIFIED))
    log.append([(b"a", b"2")], NOW_MS, TxnWriter(7, 2))
    with pytest.raises(Refused) as refused:
        log.append([(b"a", b"1")], NOW_MS, TxnWriter(7, 1))
    assert refused.value.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(Refused) as refused:
        log.append_marker(TxnMarker(7, 1, 5, is_commit=False), NOW_MS)
    assert refused.value.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
