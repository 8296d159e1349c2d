"""Brokers of two versions in one cluster: the newer ones publish a kind of change that the older ones cannot read.

What travels is the same but for a mark behind the changes of a newer controller, which an older broker stumbles over. Owns the
replacement of the two functions of the format, for the length of one run. The hosts of older brokers are told to it.
"""

from asyncio.events import _get_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from headrace.broker.cluster import controller_link
from headrace.broker.internal_apis import pull_changes
from headrace.controller.changes import ChangeBatch, decode, encode
from headrace.errors import MalformedMessage
from headrace.testing.virtual.event_loop import VirtualEventLoop

_NEWER: Final = b"\n"  # behind the JSON of a batch, where every decoder passes over it


@contextmanager
def mixed_versions(is_older: Callable[[str], bool]) -> Iterator[None]:
    """`is_older` says of a host whether a broker of the older version runs there."""

    def encode_as_version(batch: ChangeBatch) -> bytes:
        return encode(batch) if _is_here(is_older) else encode(batch) + _NEWER

    def decode_as_version(data: bytes) -> ChangeBatch:
        if data[-1:] == _NEWER and _is_here(is_older):
            raise MalformedMessage("a kind of change of a later version")
        return decode(data)

    with (
        patch.object(pull_changes, "encode", encode_as_version),
        patch.object(controller_link, "decode", decode_as_version),
    ):
        yield


def _is_here(is_older: Callable[[str], bool]) -> bool:
    loop = _get_running_loop()
    return isinstance(loop, VirtualEventLoop) and is_older(loop.host)
