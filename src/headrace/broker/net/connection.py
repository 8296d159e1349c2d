"""One client connection: frames in, answers out in request order. A rim module, and one of the hot ones.

Order: requests of a connection are handled one after the other, as Kafka does. Only a Produce that waits for its replicas
lets the next request start: its place in the log is fixed by then. Answers of one wake-up leave in one write, unless they
are large. No request is handled while the peer has not taken `_WRITE_HIGH_WATER_BYTES` of answers, nor while as much
waits behind an earlier request. Requests that arrived together and take long let other connections in between. Reading
stops, too, while too many requests are queued and while the memory budget is used up.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, cast

from headrace.broker.net.buffer_pool import BufferPool
from headrace.broker.net.busy_poll import BusyPoll
from headrace.broker.net.frame_buffer import Frame, FrameBuffer
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.net.read_budget import ReadBudget
from headrace.broker.net.refused_batches import RefusedBatches
from headrace.broker.security.principal import ANONYMOUS
from headrace.errors import MalformedMessage
from headrace.wire.codec import Piece

_logger = logging.getLogger(__name__)

_MAX_QUEUED_FRAMES: Final = 64
_WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024
_MAX_PIECES: Final = (
    1024  # in one write without joining small ones; uvloop fails with more than a million
)
_SMALL_PIECE_BYTES: Final = 4096
_WORK_BUDGET_S: Final = 0.005  # of queued requests of one connection, before others are served

Answer: TypeAlias = list[Piece] | None
"""Pieces of a whole frame, or None for a request that is not answered (acks=0)."""


class DelayedAnswer(Protocol):
    """An answer that is completed later, such as a Produce with acks=all. The next request of the connection is handled before."""

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back once the answer can be encoded. The callback must only schedule work, because a partition is being changed then."""

    def answer(self) -> Answer:
        """Encode the answer. Called once."""


AnyAnswer: TypeAlias = "Answer | DelayedAnswer | Coroutine[Any, Any, Answer | DelayedAnswer]"
"""An answer, now or later. Behind a coroutine the next request waits, until it returns."""


class Dispatch(Protocol):
    """Answers requests; implemented by `broker.requests.dispatch`."""

    def __call__(self, connection: "Connection", frames: Sequence[Frame]) -> Sequence[AnyAnswer]:
        """Answer the first request, or several of the first that can be handled together.

        MalformedMessage if the peer broke the protocol.
        """


class ConnectionOwner(Protocol):
    """What a connection needs from the listener it belongs to."""

    receive_area: memoryview
    busy_poll: BusyPoll
    read_budget: ReadBudget
    buffer_pool: BufferPool
    budget: MemoryBudget
    max_frame_bytes: int
    dispatch: Dispatch
    listener_name: str
    is_inter_broker: bool

    def next_connection_id(self) -> int:
        """A number that no other connection of this broker has or had."""

    def opened(self, connection: "Connection") -> bool:
        """Count a connection in; False if it is one too many."""

    def closed(self, connection: "Connection") -> None:
        """Count it out."""

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run in the background, in the broker's task group."""

    def now(self) -> float:
        """The loop's clock, coarse: good enough to find idle connections."""


class _Slot:
    """The place of one answer in the order of a connection."""

    __slots__ = ("answer", "frame_bytes", "is_done")

    def __init__(self, frame_bytes: int) -> None:
        self.answer: Answer = None
        self.frame_bytes = frame_bytes
        self.is_done = False


class Connection(asyncio.BufferedProtocol):
    """One connection of a client. The public fields are for the handlers of its requests."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self._owner = owner
        self.connection_id = owner.next_connection_id()
        self._frames = FrameBuffer(owner.max_frame_bytes, owner.buffer_pool)
        self._queue: deque[Frame] = deque()
        self._outbox: deque[_Slot] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport | None = None
        self._outbox_bytes = 0  # of answers that are ready and behind one that is not
        self._partial_bytes = 0  # of the frame that is arriving
        self._is_busy = False  # a request is being handled that the next one must wait for
        self._is_write_paused = False
        self._is_read_paused = False
        self._is_closing = False
        self._is_work_put_off = False
        self._done: list[tuple[_Slot, DelayedAnswer]] = []  # answers to be made
        self.last_active = 0.0
        self.peer_host = ""
        self.local_address = ("", 0)
        self.listener_name = owner.listener_name
        self.has_produced = False  # its first records have been opened, see `apis.produce`
        self.is_inter_broker = owner.is_inter_broker
        self.principal = ANONYMOUS  # until a listener authenticates
        self.known_requests: Any = None  # `requests.fast_path.KnownRequests`
        self.admitted_requests = 0  # so many at the head of the queue have passed the request steps
        self.refused_batches = RefusedBatches()

    # ---- asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.peer_host = (transport.get_extra_info("peername") or ("",))[0]
        self.local_address = (transport.get_extra_info("sockname") or ("", 0))[:2]
        self.last_active = self._owner.now()
        if not self._owner.opened(self):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        for task in self._tasks:
            task.cancel()
        self._owner.budget.give_back(
            self._partial_bytes
            + sum(map(len, self._queue))
            + sum(slot.frame_bytes for slot in self._outbox)
        )
        self._partial_bytes = 0
        self._queue.clear()
        self._outbox.clear()
        self._outbox_bytes = 0
        self._owner.budget.leave(self)
        self._owner.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.area(self._owner.receive_area)

    def buffer_updated(self, nbytes: int) -> None:
        owner = self._owner
        owner.busy_poll.arrived(self, nbytes)
        self.last_active = owner.now()
        # asyncio reads again at once after a read that filled the area.
        is_filled = nbytes == len(owner.receive_area) or self._partial_bytes > 0
        arrived = owner.read_budget.clock() if is_filled else 0.0
        try:
            frames = self._frames.received(owner.receive_area, nbytes)
        except MalformedMessage as error:
            self.close(str(error))
            return
        self._count_memory(frames)
        if frames:
            self._queue += frames
            self._work()
            owner.busy_poll.answered()
        elif owner.budget.is_exhausted:
            self._balance_reading()
        if is_filled and owner.read_budget.is_exhausted(self, arrived, owner.busy_poll.changes):
            self._stand_back()

    def _count_memory(self, frames: list[Frame]) -> None:
        held_bytes = self._frames.held_bytes
        grown_by = held_bytes - self._partial_bytes + sum(map(len, frames))
        self._partial_bytes = held_bytes
        if grown_by > 0:
            self._owner.budget.take(grown_by)
        elif grown_by < 0:
            self._owner.budget.give_back(-grown_by)

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self.last_active = self._owner.now()
        self._work()

    # ---- requests

    def _work(self) -> None:
        """Handle queued requests as far as order and back-pressure allow."""
        ready: list[Piece] = []
        ready_bytes = 0
        answered_bytes = 0
        broken: MalformedMessage | None = None
        clock = self._owner.read_budget.clock
        started = clock() if len(self._queue) > 1 else 0.0
        while self._queue and not (
            self._is_busy
            or self._is_write_paused
            or self._is_closing
            or self._outbox_bytes >= _WRITE_HIGH_WATER_BYTES
        ):
            try:
                answers = self._owner.dispatch(self, self._queue)
            except MalformedMessage as error:
                broken, answers = error, (None,)
                self._is_closing = True
            for answer in answers:
                frame = self._queue.popleft()
                if answer is None or isinstance(answer, list):
                    # The frame's memory can be reused: an answer holds no view of its request.
                    self._frames.done(frame)
                    if answer is not None and self._outbox:
                        self._park(len(frame), answer)
                    else:
                        ready += answer or ()
                        ready_bytes += _size(answer)
                        answered_bytes += len(frame)
                else:
                    self._wait_for(answer, frame)
            if ready_bytes >= _WRITE_HIGH_WATER_BYTES:
                self._send(ready)  # which pauses the writing here, if the peer is slow
                ready, ready_bytes = [], 0
            if self._queue and clock() - started > _WORK_BUDGET_S:
                self._put_off_work()
                break
        if ready:
            self._send(ready)
        self._owner.budget.give_back(answered_bytes)
        if broken is not None:
            self.close(str(broken))
        else:
            self._balance_reading()

    def _put_off_work(self) -> None:
        """Go on with the queue when other connections have been served."""
        if not self._is_work_put_off:
            self._is_work_put_off = True
            self._owner.read_budget.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_work_put_off = False
        self._work()

    def _send(self, pieces: list[Piece]) -> None:
        if self._transport is not None:
            self._transport.writelines(pieces if len(pieces) <= _MAX_PIECES else _joined(pieces))

    def _park(self, frame_bytes: int, answer: list[Piece]) -> None:
        slot = _Slot(frame_bytes)
        slot.answer, slot.is_done = answer, True
        self._outbox.append(slot)
        self._outbox_bytes += _size(answer)

    def _wait_for(
        self, work: DelayedAnswer | Coroutine[Any, Any, Answer | DelayedAnswer], frame: Frame
    ) -> None:
        slot = _Slot(len(frame))
        self._outbox.append(slot)
        if not asyncio.iscoroutine(work):
            self._frames.done(frame)
            work.when_done(partial(self._delayed_is_done, slot, work))
            return
        self._is_busy = True
        task = self._owner.start_task(self._run(slot, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, slot: _Slot, work: Coroutine[Any, Any, Answer | DelayedAnswer]) -> None:
        try:
            answer = await work
        except MalformedMessage as error:
            self.close(str(error))
            return
        self._is_busy = False
        if answer is None or isinstance(answer, list):
            self._complete([(slot, answer)])
        else:
            answer.when_done(partial(self._delayed_is_done, slot, answer))
        self._work()

    def _delayed_is_done(self, slot: _Slot, delayed: DelayedAnswer) -> None:
        """Encode the answer in the next iteration of the event loop, because a partition is being changed now. Answers that are completed together leave in one write."""
        self._done.append((slot, delayed))
        if len(self._done) == 1:
            asyncio.get_running_loop().call_soon(self._make_delayed_answers)

    def _make_delayed_answers(self) -> None:
        done, self._done = self._done, []
        if self._transport is None:
            return
        try:
            answers = [(slot, delayed.answer()) for slot, delayed in done]
        except MalformedMessage as error:
            self.close(str(error))
            return
        except Exception:
            _logger.exception("an answer could not be made")
            self.close("the request could not be answered")
            return
        self._complete(answers)

    def _complete(self, answers: list[tuple[_Slot, Answer]]) -> None:
        was_full = self._outbox_bytes >= _WRITE_HIGH_WATER_BYTES
        for slot, answer in answers:
            slot.answer, slot.is_done = answer, True
            self._outbox_bytes += _size(answer)
        if self._transport is None:
            return
        self.last_active = self._owner.now()
        ready: list[Piece] = []
        answered_bytes = 0
        while self._outbox and self._outbox[0].is_done:
            done = self._outbox.popleft()
            ready += done.answer or ()
            self._outbox_bytes -= _size(done.answer)
            answered_bytes += done.frame_bytes
        if ready and not self._is_closing:
            self._send(ready)
        self._owner.budget.give_back(answered_bytes)
        if was_full:
            self._work()
        else:
            self._balance_reading()

    # ---- back-pressure

    def _balance_reading(self) -> None:
        if self._transport is None or self._is_closing:
            return
        budget = self._owner.budget
        is_mid_request = self._partial_bytes > 0
        if not (self._queue or self._outbox or is_mid_request):
            if budget.favoured is self:
                budget.leave(self)
            self._resume_reading()
        elif len(self._queue) + len(self._outbox) >= _MAX_QUEUED_FRAMES:
            self._pause_reading()
        elif budget.may_go_on(self, is_mid_request=is_mid_request):
            self._resume_reading()
        else:
            self._pause_reading()
            budget.wait(self, self._resume_reading, is_mid_request=is_mid_request)

    def _stand_back(self) -> None:
        """Let others in before this connection is read from again."""
        if not self._is_read_paused:
            self._pause_reading()
            self._owner.read_budget.call_soon(self._balance_reading)

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._is_read_paused:
            self._is_read_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and self._is_read_paused:
            self._is_read_paused = False
            self._transport.resume_reading()

    def hold(self) -> None:
        """Handle no request until `release` (max.connection.creation.rate)."""
        self._is_busy = True

    def release(self) -> None:
        """Handle requests from now on."""
        self._is_busy = False
        self._work()

    # ---- closing

    def close(self, reason: str = "") -> None:
        """Close after what was written has left."""
        if self._transport is not None:
            if reason:
                _logger.info("closing the connection of %s: %s", self.peer_host, reason)
            self._is_closing = True
            self._transport.close()

    def abort(self) -> None:
        """Close at once and drop unsent answers."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_peers_turn(self) -> bool:
        """Whether nothing can happen before the peer sends the rest of a request, or takes an answer."""
        return self._partial_bytes > 0 or self._is_write_paused or self._is_closing

    @property
    def waiting_requests(self) -> int:
        """How many requests are queued behind an earlier one."""
        return len(self._queue)

    @property
    def waiting_answers(self) -> int:
        """How many answers are ready and wait for the answer to an earlier request."""
        return sum(slot.is_done for slot in self._outbox)

    @property
    def is_idle(self) -> bool:
        """Whether there is no request to answer, or the peer does not read its answers."""
        is_stuck = self._is_write_paused or self._is_closing
        return is_stuck or not (self._queue or self._outbox)


def _size(answer: Answer) -> int:
    if answer is None:
        return 0
    return len(answer[0]) if len(answer) == 1 else sum(map(len, answer))


def _joined(pieces: list[Piece]) -> list[Piece]:
    """The same bytes with neighbours joined that are small. A memoryview stays as it is: it may be a mapped file
    (`log.files.disk.File.view`), whose bytes only the kernel may touch.
    """
    joined: list[Piece] = []
    small: list[Piece] = []
    for piece in pieces:
        if len(piece) < _SMALL_PIECE_BYTES and type(piece) is not memoryview:
            small.append(piece)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(piece)
    if small:
        joined.append(b"".join(small))
    return joined
