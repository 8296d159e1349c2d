"""What a coordinator's shard finds in its partition when the disk or its content is bad."""

import pytest

from headrace.broker.coordinators.shard_log import PartitionShardLog
from headrace.errors import CorruptBatch
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused
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
