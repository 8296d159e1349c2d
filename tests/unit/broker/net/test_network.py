"""Whether nobody listens at an address: what a dial says, and what it leaves open."""

import asyncio
from typing import Any, Final

import pytest

from headrace.broker.net import network
from headrace.broker.net.network import SocketNetwork

SILENCE: Final = object()


@pytest.mark.parametrize(
    ("outcomes", "is_refusal"),
    [
        ([ConnectionRefusedError()], True),
        ([ConnectionRefusedError(), ConnectionRefusedError()], True),
        ([None], False),
        ([ConnectionRefusedError(), None], False),
        ([TimeoutError()], False),
        ([ConnectionRefusedError(), TimeoutError()], False),
        ([OSError(113, "no route to host")], False),
        ([ConnectionResetError()], False),
        ([SILENCE], False),
        ([], False),
    ],
)
def test_only_a_refusal_at_every_address_counts(
    outcomes: list[Any], is_refusal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        waiting = list(outcomes)

        async def getaddrinfo(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
            return [(2, 1, 6, "", ("127.0.0.1", port)) for _ in outcomes]

        async def sock_connect(_: object, address: object) -> None:
            outcome = waiting.pop(0)
            if outcome is SILENCE:
                await asyncio.Event().wait()
            elif outcome is not None:
                raise outcome

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(loop, "sock_connect", sock_connect)
        assert await SocketNetwork().refuses_connections("somewhere", 9092) is is_refusal

    if SILENCE in outcomes:
        monkeypatch.setattr(network, "_DIAL_S", 0)
    asyncio.run(story())


@pytest.mark.parametrize("host", ["kafka..example", "a" * 64 + ".example", "nul\0"])
def test_an_impossible_host_says_nothing(host: str) -> None:
    async def story() -> None:
        assert not await SocketNetwork().refuses_connections(host, 9092)

    asyncio.run(story())
