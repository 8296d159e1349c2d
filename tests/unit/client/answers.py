"""What a broker would send: responses as frames."""

from headrace.wire.codec import encode_pieces
from headrace.wire.framing import length_prefix
from headrace.wire.headers import encode_response_start, response_header_has_tags
from headrace.wire.message import Response


def framed(payload: bytes) -> bytes:
    return length_prefix([payload]) + payload


def answer_frame(correlation_id: int, response: Response, version: int) -> bytes:
    body = b"".join(encode_pieces(response, version))
    has_tags = response_header_has_tags(response.API_KEY, version)
    return encode_response_start(correlation_id, len(body), has_tags=has_tags) + body
