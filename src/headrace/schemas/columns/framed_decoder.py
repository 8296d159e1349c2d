"""Decodes columns of serialised keys or values: rows are grouped by their schema, and each group is read with it.

What is wrong with one row, an unknown schema included, is that row's error. A registry that does not answer is not: it
is raised, because the rows may be sound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.schemas.columns.codec import ValueDecoder
from headrace.schemas.columns.decoded import Decoded, Undecodable
from headrace.schemas.columns.framed_values import take_apart
from headrace.schemas.wire_format import SchemaReference

_MOST_KEPT: Final = 1000  # decoders and errors; records decide which schemas they refer to


class FramedDecoder:
    """Reads a column in the type `wanted`."""

    def __init__(
        self, wanted: pa.DataType, decoder_for: Callable[[SchemaReference], ValueDecoder]
    ) -> None:
        """`decoder_for` raises Undecodable for a schema that is unknown or does not fit."""
        self._wanted = wanted
        self._decoder_for = decoder_for
        self._decoders: dict[SchemaReference, ValueDecoder | str] = {}

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> Decoded:
        """`headers` has the value of each row's schema header, null where it has none. Null values stay null."""
        present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        if len(present) == len(values):
            return self._decode(values, headers)
        places = pa.array(present)
        some = None if headers is None else headers.take(places)
        found = self._decode(values.take(places), some)
        order = np.zeros(len(values), dtype=np.int64)
        order[present] = np.arange(len(present))
        absent = np.ones(len(values), dtype=np.bool_)
        absent[present] = False
        return Decoded(
            found.values.take(pa.array(order, mask=absent)),
            {int(present[row]): why for row, why in found.errors.items()},
        )

    def _decode(self, values: pa.Array, headers: pa.Array | None) -> Decoded:
        apart = take_apart(values, headers)
        errors = dict(apart.errors)
        parts: list[pa.Array] = []
        order = np.full(len(values), -1, dtype=np.int64)
        done = 0
        for group in apart.groups:
            decoder = self._known(group.reference)
            if isinstance(decoder, str):
                errors.update((int(row), decoder) for row in group.rows)
                continue
            found = decoder.decode(group.payload, group.header_rest)
            parts.append(found.values)
            order[group.rows] = np.arange(done, done + len(group.rows))
            done += len(group.rows)
            errors.update((int(group.rows[row]), why) for row, why in found.errors.items())
        if not parts:
            return Decoded(pa.nulls(len(values), self._wanted), errors)
        whole = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        missing = order < 0
        if len(parts) == 1 and not missing.any():
            return Decoded(whole, errors)
        return Decoded(whole.take(pa.array(order, mask=missing)), errors)

    def _known(self, reference: SchemaReference) -> ValueDecoder | str:
        found = self._decoders.get(reference)
        if found is None:
            try:
                found = self._decoder_for(reference)
            except Undecodable as error:
                found = str(error)
            if len(self._decoders) >= _MOST_KEPT:
                self._decoders.clear()  # the registry's client still knows the schemas
            self._decoders[reference] = found
        return found
