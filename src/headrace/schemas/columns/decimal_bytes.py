"""Decimals as the bytes of their unscaled number, big-endian and signed, a whole column at once. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.schemas.columns.byte_columns import joined_blocks

_BYTES: Final = 16  # of a decimal in Arrow


def decimal_column(values: pa.Array, size: int | None) -> pa.Array:
    """Each decimal in as few bytes as it needs, or in just `size` bytes. Raises ValueError where it does not fit."""
    count = len(values)
    data = values.buffers()[1]
    if data is None or not count:
        return pa.array([b""] * count, pa.binary())
    little = np.frombuffer(memoryview(data), dtype=np.uint8).reshape(-1, _BYTES)
    big = little[values.offset : values.offset + count, ::-1]
    negative = big[:, 0] >= 0x80
    sign = np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None]
    # A byte says nothing if it and all before it only repeat the sign, and the next byte begins with the sign, too.
    leading = np.logical_and.accumulate(big == sign, axis=1)
    needless = np.zeros_like(leading)
    needless[:, :-1] = leading[:, :-1] & ((big[:, 1:] >= 0x80) == negative[:, None])
    if size is None:
        return joined_blocks([(big, ~needless)])
    if size > _BYTES:
        big = np.concatenate([np.repeat(sign, size - _BYTES, axis=1), big], axis=1)
    elif not needless[:, : _BYTES - size].all():
        raise ValueError(f"a decimal needs more than {size} bytes")
    chosen = np.ascontiguousarray(big[:, big.shape[1] - size :])
    return joined_blocks([(chosen, np.ones_like(chosen, dtype=np.bool_))])
