"""Addresses, and who is asked when somebody does not answer."""

import pytest

from headrace.client.brokers import Address, Brokers, Link, Unreachable, parse_addresses
from headrace.client.exchange import Disconnected
from headrace.client.retries import BlockingTime
from tests.unit.client.scripted_cluster import ScriptedCluster, ScriptedLink


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a:1,b:2 , c:3,", [("a", 1), ("b", 2), ("c", 3)]),
        ("a", [("a", 9092)]),
        ("[::1]:9093,[::1]", [("::1", 9093), ("::1", 9092)]),
        ("PLAINTEXT://a:1", [("a", 1)]),
    ],
)
def test_addresses(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize("text", ["", " , ", "a:b", "a:0", "a:70000", ":9092"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"form host:port|no address"):
        parse_addresses(text)


def test_addresses_read_as_they_are_written() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a", 1)) == "a:1"


def test_the_first_that_answers_is_asked() -> None:
    cluster = ScriptedCluster((1, 2, 3))
    cluster.down = {1, 2}
    brokers = Brokers(parse_addresses("b1,b2,b3"), connect=cluster.connect)
    assert brokers.any() is brokers.any()


def test_nobody_answers() -> None:
    cluster = ScriptedCluster((1, 2))
    cluster.down = {1, 2}
    brokers = Brokers(parse_addresses("b1,b2"), connect=cluster.connect, patience_s=0)
    with pytest.raises(Unreachable) as told:
        brokers.any()
    assert str(told.value) == "no broker at b1:9092, b2:9092: Refused"


class Clock(BlockingTime):
    def __init__(self) -> None:
        self.s = 0.0

    def now_s(self) -> float:
        return self.s

    def sleep(self, seconds: float) -> None:
        self.s += seconds


def test_somebody_who_waits_long_is_told_once() -> None:
    cluster = ScriptedCluster((1,))
    cluster.down = {1}
    clock, told = Clock(), list[tuple[float, str]]()
    brokers = Brokers(
        parse_addresses("b1"),
        connect=cluster.connect,
        patience_s=5,
        on_waiting=lambda unreachable: told.append((round(clock.s, 1), str(unreachable))),
        blocking_time=clock,
    )
    with pytest.raises(Unreachable):
        brokers.any()
    assert told == [(1.0, "no broker at b1:9092: Refused")]
    assert round(clock.s, 1) == 5.0


def test_a_broker_that_starts_in_time_is_found_without_a_word() -> None:
    cluster = ScriptedCluster((1,))
    cluster.down = {1}
    clock, told = Clock(), list[str]()

    def connect(address: Address) -> Link:
        if clock.s > 0.5:
            cluster.down = set()
        return cluster.connect(address)

    brokers = Brokers(
        parse_addresses("b1"),
        connect=connect,
        patience_s=5,
        on_waiting=lambda unreachable: told.append(str(unreachable)),
        blocking_time=clock,
    )
    brokers.any()
    assert told == []


def test_a_broker_is_asked_where_metadata_says_it_lives() -> None:
    cluster = ScriptedCluster((1, 2))
    brokers = Brokers(parse_addresses("b1"), connect=cluster.connect)
    with pytest.raises(Disconnected, match="broker 2 is not known"):
        brokers.to(2)
    brokers.learn({2: Address("b2", 9092)})
    connection = brokers.to(2)
    assert brokers.to(2) is connection
    brokers.drop(connection)
    assert brokers.to(2) is not connection


def test_one_that_took_a_connection_and_did_not_answer_is_asked_last() -> None:
    cluster = ScriptedCluster((1, 2, 3))
    asked: list[Address] = []

    def connect(address: Address) -> ScriptedLink:
        asked.append(address)
        return cluster.connect(address)

    brokers = Brokers(parse_addresses("b1"), connect=connect)
    brokers.learn({number: Address(f"b{number}", 9092) for number in (1, 2, 3)})
    for _ in range(4):
        brokers.drop(brokers.any())
    assert [address.host for address in asked] == ["b1", "b2", "b3", "b1"]
