"""One connection's half of the protocol, without the socket: frames out, answers in, in order.

It owns the correlation ids and the queue of requests that wait for an answer. A broker answers a
connection's requests in the order they came, so answers need no lookup; one with another correlation
id means that the stream is broken. After any MalformedMessage the connection has to be closed.
"""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from headrace import __version__
from headrace.errors import HeadraceError, MalformedMessage
from headrace.wire.api_keys import ApiKey
from headrace.wire.codec import Piece, decode, encode_pieces
from headrace.wire.error_code import ErrorCode
from headrace.wire.framing import MAX_FRAME_BYTES, FrameReader, length_prefix
from headrace.wire.headers import (
    RequestHeader,
    decode_correlation_id,
    encode_request_header,
    response_body_offset,
)
from headrace.wire.message import Request, Response
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

R = TypeVar("R", bound=Response)

VersionRanges = Mapping[int, tuple[int, int]]


class Disconnected(HeadraceError):
    """The peer closed the connection, or it broke, before the answer came."""


class VersionNotOffered(HeadraceError):
    """The peer does not offer the API, or no version of it that we know."""


class _Waiting(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    response: type[Response]


class Exchange:
    """Requests under way on one connection."""

    def __init__(self, client_id: str | None, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._client_id = client_id
        self._frames = FrameReader(max_frame_bytes)
        self._waiting: deque[_Waiting] = deque()
        self._next_correlation_id = 0

    @property
    def waiting_count(self) -> int:
        """How many requests have no answer yet."""
        return len(self._waiting)

    def ask(self, request: Request[Response], version: int) -> list[Piece]:
        """The frame of a request, in pieces to be sent in order; its answer is now awaited."""
        pieces = self.tell(request, version)
        waiting = _Waiting(
            self._next_correlation_id - 1, request.API_KEY, version, request.RESPONSE
        )
        self._waiting.append(waiting)
        return pieces

    def tell(self, request: Request[Response], version: int) -> list[Piece]:
        """The frame of a request that is not answered: Produce with acks=0."""
        header = RequestHeader(request.API_KEY, version, self._next_correlation_id, self._client_id)
        pieces = [encode_request_header(header), *encode_pieces(request, version)]
        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFF_FFFF
        return [length_prefix(pieces), *pieces]

    def feed(self, data: bytes) -> list[Response]:
        """Takes bytes of the peer; returns the answers they complete, in the order of the requests."""
        return [self._answer(frame) for frame in self._frames.feed(data)]

    def _answer(self, frame: memoryview) -> Response:
        correlation_id = decode_correlation_id(frame)
        if not self._waiting or self._waiting[0].correlation_id != correlation_id:
            raise MalformedMessage(f"an answer to {correlation_id}, which is not the next awaited")
        waiting = self._waiting.popleft()
        offset = response_body_offset(frame, waiting.api_key, waiting.version)
        version = waiting.version
        if waiting.api_key == ApiKey.API_VERSIONS and _is_refused_version(frame, offset):
            version = (
                0  # whatever was asked: the peer cannot know more of us than the first version
            )
        return decode(waiting.response, version, frame, offset)


def _is_refused_version(frame: memoryview, offset: int) -> bool:
    return frame[offset : offset + 2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2)


def api_versions_request() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="headrace", client_software_version=__version__)


def next_api_versions_version(answer: ApiVersionsResponse, asked: int) -> int | None:
    """The version to ask again with, when the peer refused the one asked for."""
    if answer.error_code != ErrorCode.UNSUPPORTED_VERSION or asked == 0:
        return None
    for entry in answer.api_keys:
        if entry.api_key == ApiKey.API_VERSIONS:
            return min(entry.max_version, asked - 1)
    return 0


def offered_versions(answer: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    if answer.error_code:
        error = ErrorCode.of(answer.error_code)
        raise VersionNotOffered(f"the peer does not say what it offers: {error.name}")
    return {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}


def highest_common_version(request: Request[Response], offered: VersionRanges) -> int:
    """The highest version of a request that both sides know."""
    low, high = request.VERSIONS
    theirs = offered.get(request.API_KEY)
    if theirs is None or min(high, theirs[1]) < max(low, theirs[0]):
        name = ApiKey(request.API_KEY).title
        raise VersionNotOffered(f"we speak {name} {low}-{high}, the peer offers {theirs}")
    return min(high, theirs[1])
