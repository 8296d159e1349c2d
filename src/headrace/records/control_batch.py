"""Transaction markers: the batch of one control record that commits or aborts a producer's transaction."""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from headrace.errors import CorruptBatch
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import Buffer

_KEY: Final = Struct(">hh")  # version, type
_VALUE: Final = Struct(">hi")  # version, coordinator epoch


class ControlType(IntEnum):
    """Kinds of control record that Headrace acts on; others are carried and ignored."""

    ABORT = 0
    COMMIT = 1


class TxnMarker(NamedTuple):
    """What a transaction coordinator says at the end of a transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    has_epoch_bump: bool = False
    """Its epoch is above the one that the transaction wrote in (transaction version 2). Not part of the record."""


def build_marker(
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    offset: int = 0,
) -> bytearray:
    """The marker that ends a transaction."""
    record = Record(
        offset, timestamp, _KEY.pack(0, control_type), _VALUE.pack(0, coordinator_epoch)
    )
    return build_batch(
        [record],
        BatchOptions(
            producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
        ),
    )


def read_marker(batch: Buffer) -> tuple[int, int]:
    """(control type, coordinator epoch) of a control batch; the type may be one that ControlType lacks."""
    records = read_batch(batch, limit_bytes=4096)
    if not records or records[0].key is None or len(records[0].key) < _KEY.size:
        raise CorruptBatch("a control batch without a control record")
    control_type = _KEY.unpack_from(records[0].key)[1]
    value = records[0].value
    coordinator_epoch = _VALUE.unpack_from(value)[1] if value and len(value) >= _VALUE.size else -1
    return control_type, coordinator_epoch
