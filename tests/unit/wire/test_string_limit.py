"""A compact string may not be longer than a plain one could be, as in Kafka: whoever keeps names keeps little."""

import pytest

from headrace.errors import MalformedMessage
from headrace.wire.codec import decode, encode
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest


def test_the_longest_string_is_taken() -> None:
    request = FindCoordinatorRequest(key="x" * 0x7FFF)
    assert decode(FindCoordinatorRequest, 3, encode(request, 3)) == request


def test_a_longer_one_is_refused() -> None:
    request = FindCoordinatorRequest(key="x" * 0x8000)
    with pytest.raises(MalformedMessage, match="too long"):
        decode(FindCoordinatorRequest, 3, encode(request, 3))
