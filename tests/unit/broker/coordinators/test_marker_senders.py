"""Connections that a marker sender has given up: known by a newer one of the same broker."""

from headrace.broker.coordinators.marker_senders import MarkerSenders, marker_sender_client_id

ONE, TWO = marker_sender_client_id(1), marker_sender_client_id(2)


def senders() -> MarkerSenders:
    return MarkerSenders(lambda broker_id: broker_id in (1, 2))


def test_a_connection_is_given_up_once_a_newer_one_was_used() -> None:
    known = senders()
    assert not known.is_given_up(ONE, 5)
    assert not known.is_given_up(ONE, 5)
    assert not known.is_given_up(ONE, 8)
    assert known.is_given_up(ONE, 5)
    assert not known.is_given_up(ONE, 8)


def test_other_brokers_have_connections_of_their_own() -> None:
    known = senders()
    assert not known.is_given_up(ONE, 8)
    assert not known.is_given_up(TWO, 5)
    assert not known.is_given_up(ONE, 8)


def test_tools_and_unknown_brokers_may_use_several_connections() -> None:
    known = senders()
    for name in ("adminclient-1", "", marker_sender_client_id(3), "broker-01-txn-marker-sender"):
        assert not known.is_given_up(name, 8)
        assert not known.is_given_up(name, 5)
    assert not known.is_given_up(f"broker-{'9' * 5_000}-txn-marker-sender", 8)
