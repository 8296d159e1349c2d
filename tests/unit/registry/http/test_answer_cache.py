"""Look-ups by id that are answered from memory: when they are, and when they must not be."""

import asyncio
from typing import Any

from headrace.registry.http.answer_cache import AnswerCache

HEADERS = [(b"content-type", b"x"), (b"content-length", b"3")]


class World:
    """An application that answers with the number of the request, and the cache in front of it."""

    def __init__(self, **options: Any) -> None:
        self.status = 200
        self.change_number = 0
        self.changes_while_asked = False
        self.asked = 0
        self.cache = AnswerCache(self._app, lambda: self.change_number, **options)

    async def _app(self, scope: Any, _: Any, send: Any) -> None:
        self.asked += 1
        scope["route"] = "the route"
        body = f"{self.asked:03}".encode()
        if self.changes_while_asked:
            self.change_number += 1
        await send({"type": "http.response.start", "status": self.status, "headers": HEADERS})
        await send({"type": "http.response.body", "body": body})

    def ask(
        self, path: str = "/schemas/ids/1", query: str = "", method: str = "GET", **headers: str
    ) -> bytes:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)
            if message["type"] == "http.response.start":
                message["headers"].append((b"added", b"by another middleware"))
                message["headers"].pop()

        async def receive() -> Any:
            raise AssertionError

        scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), b"") for name in headers],
        }
        asyncio.run(self.cache(scope, receive, send))
        start, body = sent
        assert (start["status"], start["headers"]) == (self.status, HEADERS)
        assert scope["route"] == "the route"  # metrics count a hit under it
        found: bytes = body["body"]
        return found


def test_an_answer_is_kept_until_the_state_changes() -> None:
    world = World()
    assert [world.ask(), world.ask()] == [b"001", b"001"]
    world.change_number += 1
    assert [world.ask(), world.ask()] == [b"002", b"002"]


def test_path_and_query_tell_answers_apart() -> None:
    world = World()
    asked = [("/schemas/ids/1", ""), ("/schemas/ids/2", ""), ("/schemas/ids/1", "subject=a")]
    assert [world.ask(*each) for each in asked] == [b"001", b"002", b"003"]
    assert [world.ask(*each) for each in asked] == [b"001", b"002", b"003"]


def test_what_is_not_kept() -> None:
    world = World()
    for each in (
        {"path": "/subjects"},
        {"method": "HEAD"},
        {"query": "format=resolved"},
        {"query": "a=b&findTags=x"},
        {"x_forward": "false"},
    ):
        assert world.ask(**each) != world.ask(**each)


def test_a_forwarded_request_is_not_answered_with_what_was_kept() -> None:
    world = World()
    assert world.ask(query="subject=alias") == b"001"
    assert world.ask(query="subject=alias", x_forward="false") == b"002"


def test_errors_are_not_kept() -> None:
    world = World()
    world.status = 404
    assert world.ask() != world.ask()


def test_an_answer_of_a_state_that_changed_meanwhile_is_not_kept() -> None:
    world = World()
    world.changes_while_asked = True
    world.ask()
    world.changes_while_asked = False
    assert [world.ask(), world.ask()] == [b"002", b"002"]


def test_memory_is_bounded() -> None:
    world = World(max_bytes=5000)
    for number in range(100):
        world.ask(f"/schemas/ids/{number}")
        assert world.cache._bytes <= 5000
        assert len(world.cache._answers) <= 5
