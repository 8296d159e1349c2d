"""Peers that are slow, silent or greedy on purpose: memory stays bounded, and a bystander does not notice."""

import time
from contextlib import ExitStack, closing

from headrace.client.connection import Connection
from headrace.client.exchange import Exchange
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.robustness.attack import ping
from tests.robustness.bystander import Bystander
from tests.robustness.conftest import StartBroker
from tests.robustness.raw_peer import dial, is_closed, is_served, receive_frames
from tests.robustness.wire_calls import FETCH_VERSION, create_topic, fetch_request, produce
from tests.support.process_memory import MIB, MemoryWatch, resident_bytes

BIG = 100 * MIB  # the largest frame that a broker takes by default
PEERS = 500


def test_frames_that_are_announced_and_never_sent(start_broker: StartBroker) -> None:
    broker = start_broker()
    with (
        Bystander(broker.port, "bystander") as bystander,
        MemoryWatch(broker.pid) as memory,
        ExitStack() as stack,
    ):
        for _ in range(PEERS):
            peer = stack.enter_context(closing(dial(broker.port)))
            peer.sendall(BIG.to_bytes(4) + bytes(100))
        rounds = bystander.rounds
        while bystander.rounds < rounds + 20:
            time.sleep(0.01)
    # 50 GB were announced.
    assert memory.growth_bytes < PEERS * 64 * 1024


def test_slow_senders_are_served_when_they_are_done(start_broker: StartBroker) -> None:
    broker = start_broker()
    request = ping(5)
    with Bystander(broker.port, "bystander") as bystander, ExitStack() as stack:
        peers = [stack.enter_context(closing(dial(broker.port))) for _ in range(100)]
        for position in range(len(request)):
            for peer in peers:
                peer.sendall(request[position : position + 1])
            time.sleep(0.01)
        for peer in peers:
            receive_frames(peer, 1)
    assert bystander.rounds > 0


def test_a_peer_that_never_reads_its_answers(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "large")
        for _ in range(20):
            produce(connection, "large", [bytes(900_000)])
    exchange = Exchange("deaf")
    asked = b"".join(
        b"".join(exchange.ask(fetch_request("large", offset), FETCH_VERSION))
        for offset in range(20)
        for _ in range(10)
    )
    with (
        Bystander(broker.port, "bystander") as bystander,
        MemoryWatch(broker.pid) as memory,
        ExitStack() as stack,
    ):
        for _ in range(10):
            peer = stack.enter_context(closing(dial(broker.port, receive_bytes=4096)))
            peer.sendall(asked)
        rounds = bystander.rounds
        while bystander.rounds < rounds + 50:
            time.sleep(0.01)
    # A gigabyte each was asked for; what lies in the page cache anyhow does not count.
    assert memory.growth_bytes < 100 * MIB


def test_a_deaf_peer_does_not_keep_the_broker_from_stopping(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "large")
        produce(connection, "large", [bytes(900_000)])
    exchange = Exchange("deaf")
    fetches = [fetch_request("large", 0) for _ in range(2)]
    waits_long = fetch_request("large", 1, max_wait_ms=600_000)
    with (
        closing(dial(broker.port, receive_bytes=4096)) as deaf,
        closing(dial(broker.port)) as member,
    ):
        for request in (*fetches, waits_long):
            deaf.sendall(b"".join(exchange.ask(request, FETCH_VERSION)))
        joins = Exchange("member")
        join = JoinGroupRequest(
            group_id="waiting",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=600_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        member.sendall(b"".join(joins.ask(join, 3)))
        assert is_served(member)
        broker.stop()  # fails if that takes too long


def test_a_small_request_for_very_much_is_refused(start_broker: StartBroker) -> None:
    broker = start_broker()
    request = DescribeGroupsRequest(
        groups=[""] * 5_000_000
    )  # 5 MB; their answers would be gigabytes
    frame = b"".join(Exchange("greedy").ask(request, 5))
    with (
        Bystander(broker.port, "bystander") as bystander,
        MemoryWatch(broker.pid) as memory,
        closing(dial(broker.port)) as peer,
    ):
        peer.sendall(frame)
        assert is_closed(peer)
    assert memory.growth_bytes < 50 * MIB
    assert bystander.slowest_round_s < 10


def test_memory_is_given_back_after_an_onslaught(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "large")
        before_bytes = resident_bytes(broker.pid)
        for _ in range(3):
            with ExitStack() as stack:
                for _ in range(40):
                    peer = stack.enter_context(closing(dial(broker.port)))
                    peer.sendall(BIG.to_bytes(4) + bytes(1_000_000))
                produce(connection, "large", [bytes(500_000)])
        time.sleep(0.5)
        produce(connection, "large", [b"still here"])
        assert resident_bytes(broker.pid) - before_bytes < 40 * MIB
