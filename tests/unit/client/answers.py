"""What a broker would send: responses as frames."""

from headrace.wire.codec import encode_pieces
from headrace.wire.framing import length_prefix
from headrace.wire.headers import encode_response_header
from headrace.wire.message import Response


def framed(payload: bytes) -> bytes:
    return length_prefix([payload]) + payload


def answer_frame(correlation_id: int, response: Response, version: int) -> bytes:
    header = encode_response_header(response.API_KEY, version, correlation_id)
    return framed(b"".join([header, *encode_pieces(response, version)]))
