"""Frames, headers and versions, where clients are known to fall: docs/protocol-pitfalls.md."""

from struct import pack, unpack_from

import pytest

from headrace.client.exchange import Disconnected
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.metadata import MetadataRequest
from tests.differential.requests import batch, produce
from tests.pitfalls.conftest import Peer

API_VERSIONS, METADATA, PRODUCE = 18, 3, 0


def header(key: int, version: int, correlation_id: int = 7) -> bytes:
    return pack(">hhih", key, version, correlation_id, -1)


def test_an_api_versions_request_of_the_future_is_answered_in_version_0(peer: Peer) -> None:
    peer.connection.send_frame(header(API_VERSIONS, 99) + b"\x00whatever the future has")
    answer = peer.connection.receive_frame()
    correlation_id, error, entries, key, first, last = unpack_from(">ihihhh", answer)
    assert (correlation_id, error) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert (entries, key, first, last) == (1, API_VERSIONS, 0, 4)
    assert len(answer) == 4 + 2 + 4 + 6


@pytest.mark.parametrize("name", ["", "-begins", "has blanks", "ends-"])
def test_a_client_with_an_odd_name_is_told(peer: Peer, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
    assert peer.connection.send(request, 3).error_code == ErrorCode.INVALID_REQUEST


def test_the_answer_to_api_versions_has_no_tags_in_its_header(peer: Peer) -> None:
    # Header version 2 with its tags, then the compact strings of version 3.
    body = b"\x00" + b"\x05name" + b"\x042.0" + b"\x00"
    peer.connection.send_frame(header(API_VERSIONS, 3) + body)
    correlation_id, error = unpack_from(">ih", peer.connection.receive_frame())
    assert (correlation_id, error) == (7, 0)


@pytest.mark.parametrize(
    ("key", "version"), [(METADATA, 99), (PRODUCE, 2), (999, 0), (4, 0), (-1, 0)]
)
def test_what_is_not_offered_closes_the_connection(peer: Peer, key: int, version: int) -> None:
    peer.connection.send_frame(header(key, version) + b"\x00" * 8)
    with pytest.raises(Disconnected):
        peer.connection.receive_frame()


def test_produce_is_advertised_from_0_for_the_sake_of_compression(peer: Peer) -> None:
    assert peer.connection.negotiate()[PRODUCE][0] == 0


def test_a_null_client_id_is_fine(peer: Peer) -> None:
    peer.connection.send_frame(header(METADATA, 1) + pack(">i", 0))
    assert unpack_from(">i", peer.connection.receive_frame()) == (7,)


def test_a_null_array_where_there_must_be_one_closes(peer: Peer) -> None:
    # Produce version 3: no transactional id, acks, timeout, and null topics.
    peer.connection.send_frame(header(PRODUCE, 3) + pack(">hhii", -1, 1, 1000, -1))
    with pytest.raises(Disconnected):
        peer.connection.receive_frame()


def test_acks_0_is_not_answered(peer: Peer) -> None:
    topic = peer.topic()
    peer.connection.tell(produce(topic, batch(b"a"), acks=0), 9)
    assert peer.connection.send(MetadataRequest(topics=[]), 9).brokers, (
        "the next answer is the next"
    )


def test_acks_0_that_fails_closes(peer: Peer) -> None:
    peer.connection.tell(produce("pitfall-nowhere", batch(b"a"), acks=0), 9)
    with pytest.raises(Disconnected):
        peer.connection.send(MetadataRequest(topics=[]), 9)


def test_other_acks_are_refused(peer: Peer) -> None:
    answer = peer.connection.send(produce(peer.topic(), batch(b"a"), acks=5), 9)
    (result,) = answer.responses[0].partition_responses
    assert result.error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_answers_come_in_the_order_of_the_requests(peer: Peer) -> None:
    topics = b"".join(pack(">hhihi", METADATA, 1, number, -1, 0) for number in (1, 2, 3))
    for at in range(0, len(topics), len(topics) // 3):
        peer.connection.send_frame(topics[at : at + len(topics) // 3])
    assert [unpack_from(">i", peer.connection.receive_frame())[0] for _ in range(3)] == [1, 2, 3]
