"""The fast path of Produce: a producer's next request when it has the form of an earlier one. A hot module.

Owns which forms are known. Only requests that succeed are handled here. Anything unusual (an unknown partition, a refused batch, an
attribute that is not a codec) is left to `apis.produce`, so that rules and errors are written once.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Final

from headrace.broker.net.frame_buffer import Frame
from headrace.broker.net.refused_batches import RefusedBatches
from headrace.broker.requests.fast_path import Recognised
from headrace.broker.requests.produce_append import append_batches, note_unacknowledged
from headrace.broker.requests.produce_form import (
    FORM_FROM,
    FrameLengths,
    ProduceForm,
    form_end,
    start_of,
)
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry.traffic import Traffic
from headrace.clock import Clock
from headrace.internal_topics import INTERNAL_TOPICS
from headrace.records.batch_view import BatchHeader, read_header
from headrace.records.compression import Codec
from headrace.replication.completion import Completion
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.wire.codec import Piece
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.produce import ProduceRequest
from headrace.wire.produce_response_codec import FIRST_FLEXIBLE, FIRST_WITH_IDS
from headrace.wire.refusal import Refusal

_ANSWERED_ACKS: Final = (-1, 1)
_MOST_FORMS: Final = 4096  # that connections share
_MOST_FORMS_OF_CONNECTION: Final = 1024
_MOST_FORM_BYTES: Final = 512  # a client id may be longer, and is then decoded each time
_FOREVER: Final = 2**63
_LAST_CODEC: Final = int(Codec.ZSTD)


class ProduceFastPath:
    """The forms that connections have in common: a form costs memory once, however many connections use it."""

    __slots__ = ("_forms", "_lengths", "clock", "partitions", "traffic")

    def __init__(self, partitions: PartitionTable, traffic: Traffic, clock: Clock) -> None:
        self.partitions = partitions
        self.traffic = traffic
        self.clock = clock
        self._forms: dict[bytes, ProduceForm] = {}
        self._lengths = FrameLengths()

    def learn(self, frame: Frame, context: RequestContext, request: ProduceRequest) -> None:
        """Remember the form of a request for the connection that sent it, if more requests can have that form."""
        connection, version = context.connection, context.version
        end = self._form_end(frame, version, request)
        if not end:
            return
        common_bytes, start = bytes(frame[FORM_FROM:end]), start_of(frame)
        form = self._forms.get(common_bytes)
        if form is None or form.start != start:
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            topic = self._topic_name(version, request)
            form = ProduceForm(start, common_bytes, version, topic, request, self._lengths)
            self._forms[common_bytes] = form
        known = connection.known_requests
        if not isinstance(known, _KnownProduces) or known.context != context:
            known = connection.known_requests = _KnownProduces(self, context)
        known.add(form, end)

    def _form_end(self, frame: Frame, version: int, request: ProduceRequest) -> int:
        """Where the part of a frame ends that more requests can have in common; 0 if there is none."""
        if (
            version < FIRST_FLEXIBLE
            or request.acks not in _ANSWERED_ACKS
            or request.transactional_id is not None
        ):
            return 0
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return 0
        asked = request.topic_data[0].partition_data[0]
        topic = self._topic_name(version, request)
        if self.partitions.get(topic, asked.index) is None or topic in INTERNAL_TOPICS:
            return 0
        end = form_end(frame, asked.records or b"")
        return end if end - FORM_FROM <= _MOST_FORM_BYTES else 0

    def _topic_name(self, version: int, request: ProduceRequest) -> str:
        (topic,) = request.topic_data
        if version >= FIRST_WITH_IDS:
            return self.partitions.topic_name(topic.topic_id) or ""
        return topic.name


class _KnownProduces:
    """The forms of one connection, all of the same version and client id: `requests.fast_path.KnownRequests`."""

    __slots__ = ("_end", "_forms", "_path", "_refused_batches", "context")

    def __init__(self, path: ProduceFastPath, context: RequestContext) -> None:
        self._path = path
        self.context = context
        self._refused_batches = context.connection.refused_batches
        self._forms: dict[bytes, ProduceForm] = {}
        self._end = 0

    def add(self, form: ProduceForm, end: int) -> None:
        """One more form, whose bytes end at `end` of a frame."""
        if len(self._forms) >= _MOST_FORMS_OF_CONNECTION:
            self._forms.clear()
        self._forms[form.bytes] = form
        self._end = end

    def recognise(self, frames: Sequence[Frame]) -> Recognised | None:
        form = self._forms.get(bytes(frames[0][FORM_FROM : self._end]))
        if form is None:
            return None
        partition = self._path.partitions.get(form.topic, form.index)
        batch = form.batch_in(frames[0], is_compared=True)
        if batch is None or partition is None:
            return None
        header = read_header(batch)
        if not 0 <= header.attributes <= _LAST_CODEC or (
            form.topic_id is not None and form.topic_id != partition.topic_id
        ):
            return None
        batches, headers = [batch], [header]
        # Batches that must be opened, or get the broker's time, are not written together.
        if len(frames) > 1 and partition.log.config.plain_max_bytes > 0:
            for frame in islice(frames, 1, None):
                batch = form.batch_in(frame)
                if batch is None:
                    break
                batches.append(batch)
                headers.append(read_header(batch))
        return len(batches), form.request, (form, partition, batches, headers)

    def first(self, recognised: Recognised, count: int) -> Recognised:
        known, request, (form, partition, batches, headers) = recognised
        return min(known, count), request, (form, partition, batches[:count], headers[:count])

    def answer(
        self, recognised: Recognised, frames: Sequence[Frame]
    ) -> Sequence[list[Piece] | Completion]:
        _, _, (form, partition, batches, headers) = recognised
        refused = self._refused_batches
        if refused and (form.topic_key, form.index, headers[0].producer_id) in refused:
            return ()
        if partition.is_overtaking(headers[0]):
            return ()
        path = self._path
        counters = path.traffic.of(form.topic)
        appended = append_batches(partition, batches, headers, form.acks, path.clock(), counters)
        if isinstance(appended, Refusal):
            return ()
        offset, last_offset, append_time, _, count = appended
        log_start = partition.log.log_start_offset
        committed = _FOREVER if form.acks != -1 else partition.high_watermark
        if count == 1 and last_offset < committed:
            return ([form.answer_to(frames[0], offset, append_time, log_start)],)
        answers: list[list[Piece] | Completion] = []
        for frame, header in zip(frames, headers[:count], strict=False):
            next_offset = offset + header.last_offset_delta + 1
            if next_offset <= committed:
                answers.append([form.answer_to(frame, offset, append_time, log_start)])
            else:
                late = _LateAnswer(form, frame, header, offset, append_time, log_start)
                answers.append(late.when_committed(partition, next_offset, refused))
            offset = next_offset
        return answers


class _LateAnswer:
    """The answer to a request whose batch is appended and not committed yet."""

    __slots__ = (
        "_append_time",
        "_base_offset",
        "_error_code",
        "_form",
        "_frame_start",
        "_header",
        "_log_start",
    )

    def __init__(
        self,
        form: ProduceForm,
        frame: Frame,
        header: BatchHeader,
        base_offset: int,
        append_time: int,
        log_start: int,
    ) -> None:
        self._form = form
        self._frame_start = bytes(frame[:FORM_FROM])  # the frame's memory is used again
        self._header = header
        self._base_offset = base_offset
        self._append_time = append_time
        self._log_start = log_start
        self._error_code = ErrorCode.NONE

    def when_committed(
        self, partition: Partition, next_offset: int, refused_batches: RefusedBatches
    ) -> Completion:
        """The completion that makes this answer."""
        completion = Completion(self._make, timeout_s=self._form.timeout_s)
        completion.add(partition, next_offset, partial(self._refuse, refused_batches))
        return completion

    def _refuse(self, refused_batches: RefusedBatches, error_code: ErrorCode) -> None:
        self._error_code = error_code
        form = self._form
        note_unacknowledged(error_code, self._header, form.topic_key, form.index, refused_batches)

    def _make(self) -> list[Piece]:
        form, start, log_start = self._form, self._frame_start, self._log_start
        if self._error_code:
            return [form.refusal_to(start, self._error_code, self._append_time, log_start)]
        return [form.answer_to(start, self._base_offset, self._append_time, log_start)]
