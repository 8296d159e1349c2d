"""When and where a request to a registry is repeated, over an exchange that answers from a list."""

from collections.abc import Sequence
from urllib.parse import SplitResult

import pytest

from headrace.errors import SettingError
from headrace.schemas.registry_transport import (
    Answer,
    RegistryTransport,
    RegistryUnreachable,
    TransportSettings,
    origin,
    parse_urls,
)

A, B = "http://a:1", "http://b:2"
FINE = Answer(200, b"{}")


class World:
    """A clock that moves when somebody sleeps or waits for an answer."""

    def __init__(self, outcomes: Sequence[Answer | OSError], seconds_each: float = 0.0) -> None:
        self.now = 0.0
        self.outcomes = list(outcomes)
        self.asked: list[str] = []
        self.timeouts: list[float] = []
        self.seconds_each = seconds_each

    def exchange(
        self, url: SplitResult, method: str, path: str, body: bytes | None, *, timeout_s: float
    ) -> Answer:
        self.asked.append(origin(url))
        self.timeouts.append(timeout_s)
        self.now += min(self.seconds_each, timeout_s)
        outcome = self.outcomes.pop(0) if self.outcomes else ConnectionRefusedError("refused")
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def transport(self, *urls: str) -> RegistryTransport:
        return RegistryTransport(
            TransportSettings(urls, request_timeout_s=10.0, total_timeout_s=30.0),
            exchange=self.exchange,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def test_the_next_url_is_asked_and_stays_preferred() -> None:
    world = World([ConnectionRefusedError(), FINE, FINE])
    transport = world.transport(A, B)
    assert transport.send("GET", "/") == FINE
    assert transport.send("GET", "/") == FINE
    assert world.asked == [A, B, B]
    assert world.now == 0.0


def test_an_error_of_the_request_is_not_repeated() -> None:
    refusal = Answer(422, b"{}")
    world = World([refusal])
    assert world.transport(A, B).send("POST", "/", b"{}") == refusal
    assert world.asked == [A]


def test_an_error_of_the_registry_is_repeated_after_a_pause() -> None:
    world = World([Answer(503, b""), Answer(500, b""), FINE])
    assert world.transport(A).send("GET", "/") == FINE
    assert world.asked == [A, A, A]
    assert world.now > 0.1


def test_it_gives_up_after_the_total_time() -> None:
    world = World([])
    with pytest.raises(RegistryUnreachable, match="b:2: refused"):
        world.transport(A, B).send("GET", "/")
    assert 25.0 < world.now <= 30.0


def test_attempts_that_hang_share_the_total_time() -> None:
    world = World([TimeoutError("timed out")] * 9, seconds_each=100.0)
    with pytest.raises(RegistryUnreachable, match="timed out"):
        world.transport(A, B).send("GET", "/")
    assert world.now <= 30.0
    assert world.timeouts[:2] == [10.0, 10.0]
    assert world.timeouts[2] < 10.0


def test_an_error_that_lasts_is_answered_in_the_end() -> None:
    world = World([Answer(500, b"broken")] * 1000)
    assert world.transport(A).send("GET", "/") == Answer(500, b"broken")


@pytest.mark.parametrize("url", ["", "a:1", "ftp://a", "http://", "http://a:x", "http://a:99999"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="schema registry's URL"):
        parse_urls([url])
    with pytest.raises(SettingError, match="at least one"):
        parse_urls([])


def test_passwords_are_not_told() -> None:
    (url,) = parse_urls(["https://user:secret@[::1]:8081/base/"])
    assert origin(url) == "https://[::1]:8081/base"
