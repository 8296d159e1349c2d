"""Where a broker's HTTP pages are."""

from headrace.cli.shell.broker_pages import health_reasons, page_address


def test_a_listener_on_all_addresses_is_asked_at_the_brokers_own() -> None:
    assert page_address("http://0.0.0.0:9308", "broker-1") == "broker-1:9308"
    assert page_address("http://10.0.0.7:80", "broker-1") == "10.0.0.7:80"


def test_a_page_that_does_not_answer_says_nothing() -> None:
    assert health_reasons("127.0.0.1:1") is None
