"""A `.log` file as text: its batches, and with `--deep-iteration` or `--print-data-log` their records."""

from __future__ import annotations

import argparse
import mmap
import os
import struct
from collections.abc import Callable

from headrace.cli.dump.internal_records import OFFSETS, TRANSACTIONS, Tables, show
from headrace.cli.shell.command_line import Failure, tell
from headrace.errors import CorruptBatch
from headrace.records.batch_reader import Record, iterate_records
from headrace.records.batch_view import (
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    has_valid_crc,
    read_header,
    sequence_after,
)
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType

ALL_BYTES = 2**31 - 1
_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_VALUE = struct.Struct(">hi")


class SegmentDump:
    """Prints segments and remembers where offsets do not follow each other."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._tables: Tables | None = None
        if options.offsets_decoder:
            self._tables = OFFSETS
        elif options.transaction_log_decoder:
            self._tables = TRANSACTIONS
        self._prints_data = bool(
            options.print_data_log
            or self._tables
            or options.key_decoder_class
            or options.value_decoder_class
        )
        self._is_deep = options.deep_iteration or self._prints_data
        self._skips_metadata = options.skip_record_metadata
        self._max_bytes = options.max_bytes
        self._decode_key = decoder(options.key_decoder_class)
        self._decode_value = decoder(options.value_decoder_class)
        self._gaps: dict[str, dict[int, int]] = {}

    def dump(self, path: str) -> None:
        print(f"Log starting offset: {base_offset_of(path)}")
        size = min(os.path.getsize(path), self._max_bytes)
        if not size:
            return
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            valid = self._dump_batches(path, content, size)
        if valid < size and self._max_bytes == ALL_BYTES:
            print(f"Found {size - valid} invalid bytes at the end of {os.path.basename(path)}")

    def _dump_batches(self, path: str, content: mmap.mmap, size: int) -> int:
        position, last_offset = 0, -1
        while size - position >= HEADER_BYTES:
            header = read_header(content[position : position + HEADER_BYTES])
            if header.size < HEADER_BYTES or position + header.size > size or header.magic != MAGIC:
                break
            batch = content[position : position + header.size]
            print(batch_line(header, position, is_valid=has_valid_crc(batch)))
            if self._is_deep:
                last_offset = self._dump_records(path, batch, header, last_offset)
            position += header.size
        return position

    def _dump_records(self, path: str, batch: bytes, header: BatchHeader, last_offset: int) -> int:
        try:
            for record in iterate_records(batch, header):
                if record.offset != last_offset + 1:
                    self._gaps.setdefault(os.path.abspath(path), {})[last_offset] = record.offset
                last_offset = record.offset
                print(self._record_line(record, header))
        except CorruptBatch as corrupt:
            tell(f"The batch at offset {header.base_offset} cannot be opened: {corrupt}")
        return last_offset

    def _record_line(self, record: Record, header: BatchHeader) -> str:
        text = "" if self._skips_metadata else record_text(record, header)
        if not self._prints_data or header.is_control:
            return text
        key, value = self._contents(record)
        text = text or "|"
        text += "" if key is None else f" key: {key}"
        return text if value is None else f"{text} payload: {value}"

    def _contents(self, record: Record) -> tuple[str | None, str | None]:
        if self._tables is not None:
            key, value = show(self._tables, record.key, record.value, record.offset)
            return key, value or None
        return (
            None if record.key is None else self._decode_key(record.key),
            None if record.value is None else self._decode_value(record.value),
        )

    def tell_gaps(self) -> None:
        for path, gaps in self._gaps.items():
            tell(f"Non-consecutive offsets in {path}")
            for before, after in sorted(gaps.items()):
                tell(f"  {before} is followed by {after}")


def base_offset_of(path: str) -> int:
    """The offset that a segment's file is named for."""
    name = os.path.basename(path).partition(".")[0]
    if not name.isdecimal():
        raise Failure(
            f"{path} is not named for an offset", hint="segments are: 00000000000000000000.log"
        )
    return int(name)


def batch_line(header: BatchHeader, position: int, *, is_valid: bool) -> str:
    """What stands in a batch's header."""
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset}"
        f" count: {header.record_count} baseSequence: {header.base_sequence}"
        f" lastSequence: {header.last_sequence} producerId: {header.producer_id}"
        f" producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch}"
        f" isTransactional: {_java(header.is_transactional)} isControl: {_java(header.is_control)}"
        f" deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'}"
        f" position: {position} {_timestamp_type(header)}: {header.max_timestamp}"
        f" size: {header.size} magic: {header.magic} compresscodec: {_codec(header.codec)}"
        f" crc: {header.crc} isvalid: {_java(is_valid)}"
    )


def record_text(record: Record, header: BatchHeader) -> str:
    """What is known of a record without its content."""
    sequence = -1
    if header.base_sequence >= 0:
        sequence = sequence_after(header.base_sequence, record.offset - header.base_offset)
    headers = ",".join(name for name, _ in record.headers)
    text = (
        f"| offset: {record.offset} {_timestamp_type(header)}: {record.timestamp}"
        f" keySize: {_size(record.key)} valueSize: {_size(record.value)}"
        f" sequence: {sequence} headerKeys: [{headers}]"
    )
    return text + _control_text(record) if header.is_control else text


def _control_text(record: Record) -> str:
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        return ""
    number = _CONTROL_KEY.unpack_from(record.key)[1]
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return f" controlType: UNKNOWN({number})"
    epoch = -1
    if record.value is not None and len(record.value) >= _CONTROL_VALUE.size:
        epoch = _CONTROL_VALUE.unpack_from(record.value)[1]
    return f" endTxnMarker: {ControlType(number).name} coordinatorEpoch: {epoch}"


def decoder(class_name: str | None) -> Callable[[bytes], str]:
    """How to show keys or values. Raises Failure where the class is not known."""
    name = (class_name or "StringDecoder").rpartition(".")[2]
    if name not in _DECODERS:
        raise Failure(
            f"the decoder {class_name} is not known",
            why="Java classes cannot be loaded here",
            hint=f"one of {', '.join(_DECODERS)}",
        )
    return _DECODERS[name]


def _signed(data: bytes) -> str:
    return str(int.from_bytes(data, signed=True))


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


_DECODERS: dict[str, Callable[[bytes], str]] = {
    "StringDecoder": _text,
    "IntegerDecoder": _signed,
    "LongDecoder": _signed,
    "DefaultDecoder": bytes.hex,
}


def _java(truth: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if truth else "false"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _codec(number: int) -> str:
    try:
        return Codec(number).name.lower()
    except ValueError:
        return f"unknown({number})"
