"""Completion of an append with acks=all: waits until every batch is committed, or its time is up. A rim module.

Owns the time-out, which batches are not settled yet, and the answer that is made when all of them are. Partitions tell it
through `waiting.OffsetWaiters`, once for each batch. What a refusal means for the answer is left to the creator of the
completion, and when the answer is sent to the connection.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode


class _Batch:
    """A batch that is not committed yet. Its partition calls it."""

    __slots__ = ("_completion", "_partition", "refuse")

    def __init__(
        self, completion: "Completion", partition: Partition, refuse: Callable[[ErrorCode], None]
    ) -> None:
        self._completion = completion
        self._partition = partition
        self.refuse: Callable[[ErrorCode], None] | None = (
            refuse  # None once the batch is committed or refused
        )

    def __call__(self, is_committed: bool) -> None:  # noqa: FBT001 (the form of `OnCommitted`)
        if self.refuse is not None:
            self.settle(is_committed=is_committed)
            self._completion.settled()

    def settle(self, *, is_committed: bool) -> None:
        """Refuse the batch, unless it is committed by enough replicas."""
        refuse, self.refuse = self.refuse, None
        assert refuse is not None, "settled twice"
        leader = self._partition.leader
        if not is_committed or leader is None:
            refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif leader.is_under_min_isr:
            refuse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class Completion:
    """The batches of one request that wait to be committed, and the request's answer."""

    __slots__ = ("_batches", "_make_answer", "_on_done", "_open_count", "_timer")

    def __init__(
        self, make_answer: Callable[[], Any] = lambda: None, *, timeout_s: float | None = None
    ) -> None:
        """`make_answer` is called after all batches have been committed or refused. Without a time-out it may take for ever."""
        self._make_answer = make_answer
        self._batches: list[_Batch] = []
        self._open_count = 0
        self._on_done: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if timeout_s is not None:
            self._timer = asyncio.get_running_loop().call_later(timeout_s, self._time_out)

    def add(
        self,
        partition: Partition,
        next_offset: int,
        refuse: Callable[[ErrorCode], None],
        *,
        leader_epoch: int | None = None,
    ) -> None:
        """Wait until everything below `next_offset` is committed, which it may be already.

        `leader_epoch` is the epoch in which the batch was appended, where other events may have come in between.

        `refuse` is called at once when the batch is not acknowledged: with NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, or
        NOT_ENOUGH_REPLICAS_AFTER_APPEND if it is committed by fewer replicas than min.insync.replicas.
        """
        batch = _Batch(self, partition, refuse)
        self._batches.append(batch)
        if not partition.is_leader or leader_epoch not in (None, partition.leader_epoch):
            batch.settle(is_committed=False)
        elif partition.high_watermark >= next_offset:
            batch.settle(is_committed=True)
        else:
            self._open_count += 1
            partition.committed.add(next_offset, batch)

    def wait_for(self, future: "asyncio.Future[Any]", take: Callable[[Any], None]) -> None:
        """Wait for a future, too. `take` gets its result, unless the time is up before."""
        self._open_count += 1

        def when_done(done: "asyncio.Future[Any]") -> None:
            if self._open_count > 0 and not done.cancelled():
                take(done.result())
                self.settled()

        future.add_done_callback(when_done)

    def settled(self) -> None:
        """One more batch has been committed or refused."""
        self._open_count -= 1
        if not self._open_count:
            self._done()

    def _time_out(self) -> None:
        self._open_count = 0
        for batch in self._batches:
            refuse, batch.refuse = batch.refuse, None
            if refuse is not None:
                refuse(ErrorCode.REQUEST_TIMED_OUT)
        self._done()

    def _done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._on_done is not None:
            self._on_done()

    @property
    def is_done(self) -> bool:
        """Whether every batch has been committed or refused."""
        return not self._open_count

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back once it is done, which may be now.

        The call may come while a partition is being changed, so the callback must not touch partitions.
        """
        assert self._on_done is None, "two wait for one completion"
        if self.is_done:
            if self._timer is not None:
                self._timer.cancel()
            callback()
        else:
            self._on_done = callback

    def then(self, step: Callable[[Any], Any]) -> None:
        """Apply one more function to the answer, for instance its encoding."""
        make_answer = self._make_answer
        self._make_answer = lambda: step(make_answer())

    def answer(self) -> Any:
        """The answer. Called once, after all batches are committed or refused."""
        return self._make_answer()

    def __await__(self) -> Generator[Any, None, Any]:
        """For coroutines: wait until it is done, and get the answer."""
        done = asyncio.get_running_loop().create_future()
        self.when_done(lambda: None if done.done() else done.set_result(None))
        yield from done
        return self.answer()
