"""A shard's log in memory, and an event loop whose time passes only while it has nothing to do."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import wraps
from selectors import SelectorKey, SelectSelector
from typing import Final, ParamSpec

from headrace.coordinator.contract import (
    LogEntry,
    MarkerEntry,
    StoredRecord,
    TxnEntry,
    TxnWriter,
)
from headrace.records.control_batch import TxnMarker
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

NOW_MS: Final = 1_700_000_000_000

P = ParamSpec("P")


class SkippingSelector(SelectSelector):
    """Where a loop would sleep, time jumps instead."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if timeout is not None:
            self.skipped_s += max(timeout, 0)
            timeout = 0
        return super().select(timeout)


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only while it has nothing to do."""

    def __init__(self) -> None:
        self._skipping = SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.skipped_s


def on_loop(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=SkippingLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


class MemoryLog:
    """A ShardLog in memory. `held` keeps the high watermark where it is."""

    def __init__(self, records: Sequence[StoredRecord] = (), *, leader_epoch: int = 0) -> None:
        self.leader_epoch = leader_epoch
        self.records: list[StoredRecord] = list(records)
        self.writers: dict[int, TxnWriter] = {}  # of records in transactions, by offset
        self.markers: dict[int, TxnMarker] = {}  # by offset, at which there is an empty record
        self.batch_sizes: list[int] = []
        self.high_watermark = len(self.records)
        self.held = False
        self.refusal: ErrorCode | None = None
        self.lost = False
        self._moved = asyncio.Event()

    def read_from_start(self) -> Iterator[Sequence[LogEntry]]:
        for offset, (key, value) in enumerate(list(self.records)):
            if offset in self.markers:
                yield [MarkerEntry(offset, self.markers[offset])]
            elif offset in self.writers:
                yield [TxnEntry(offset, key, value, self.writers[offset].producer_id)]
            else:
                yield [(offset, key, value)]

    def append_marker(self, marker: TxnMarker, now_ms: int) -> int:
        next_offset = self.append([(b"", None)], now_ms)
        self.markers[next_offset - 1] = marker
        return next_offset

    def append(
        self, records: Sequence[StoredRecord], now_ms: int, writer: TxnWriter | None = None
    ) -> int:
        assert now_ms >= NOW_MS
        if self.refusal is not None:
            raise Refused(self.refusal)
        if writer is not None:
            first = len(self.records)
            self.writers |= dict.fromkeys(range(first, first + len(records)), writer)
        self.records += records
        self.batch_sizes.append(len(records))
        if not self.held:
            self.high_watermark = len(self.records)
        return len(self.records)

    async def wait_committed(self, next_offset: int) -> None:
        while self.high_watermark < next_offset:
            await self._moved.wait()
            if self.lost:
                raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def release(self) -> None:
        self.held = False
        self.high_watermark = len(self.records)
        self._moved.set()
        self._moved = asyncio.Event()

    def lose(self) -> None:
        self.lost = True
        self._moved.set()
