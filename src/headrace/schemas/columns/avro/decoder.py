"""Decodes a column of Avro values with one pair of schemas: all rows at once, and the rows that this refuses one by one. Pure."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from headrace.schemas.columns.avro.columns import ColumnDecoder, ReadOneByOne, Rows
from headrace.schemas.columns.avro.resolution import resolve
from headrace.schemas.columns.avro.values import read_value
from headrace.schemas.columns.byte_columns import ByteSpans, Int64s
from headrace.schemas.columns.decoded import Decoded, Undecodable
from headrace.schemas.formats.avro.types import Type

_MOST_ATTEMPTS: Final = 8  # then what is left is read one by one, too


class AvroDecoder:
    """Reads bytes of the writer's schema as values of the reader's."""

    def __init__(self, writer: Type, reader: Type) -> None:
        self._plan = resolve(writer, reader)

    @property
    def arrow(self) -> pa.DataType:
        """The type of the values."""
        return self._plan.arrow

    def decode(self, spans: ByteSpans, header_rest: bytes | None = None) -> Decoded:
        """The values of these bytes. What may follow a reference in a header is nothing to Avro."""
        left = np.arange(len(spans), dtype=np.int64)
        singly: list[Int64s] = []
        together: pa.Array | None = None
        for _ in range(_MOST_ATTEMPTS):
            rows = Rows(spans.start[left], spans.end[left], left)
            try:
                together = ColumnDecoder(spans.buffer).decode(self._plan, rows)
                break
            except ReadOneByOne as refused:
                singly.append(refused.rows)
                left = left[~np.isin(left, refused.rows)]
            except RecursionError:
                break
        if together is None:
            singly.append(left)
            left = left[:0]
        if not singly:
            assert together is not None
            return Decoded(together)
        return self._with_single_rows(spans, together, left, np.concatenate(singly))

    def _with_single_rows(
        self, spans: ByteSpans, together: pa.Array | None, left: Int64s, singly: Int64s
    ) -> Decoded:
        values: list[Any] = []
        errors: dict[int, str] = {}
        for row in singly.tolist():
            try:
                values.append(read_value(self._plan, spans.piece(row)))
            except Undecodable as error:
                values.append(None)
                errors[row] = str(error)
        parts = [] if together is None else [together]
        parts.append(pa.array(values, self.arrow))
        order = np.argsort(np.concatenate((left, singly)), kind="stable")
        return Decoded(pa.concat_arrays(parts).take(pa.array(order)), errors)
