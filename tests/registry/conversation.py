"""Has a conversation with a registry, and makes answers comparable: ids by their order, no times, no words of others' parsers."""

import http.client
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.registry.conversations import Ask, Json

_ID = re.compile(r"#(\d+)")
_OWN_WORDS = re.compile(r"(Invalid schema of type \w+, details: ).*", re.DOTALL)
# A refusal by the HTTP layer has no media type of its own with Confluent's registry.
_HTTP_REFUSALS = (400, 404, 405, 406, 415, 422)


class Conversation:
    """Asks one registry, and remembers the ids that it told."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url)
        self._ids: list[int] = []

    def answers(self, asks: Sequence[Ask]) -> list[Json]:
        """The comparable answers: status, media type, body."""
        return [self._answer(ask) for ask in asks]

    def _answer(self, ask: Ask) -> Json:
        assert self._address.hostname is not None
        connection = http.client.HTTPConnection(
            self._address.hostname, self._address.port, timeout=60
        )
        headers = dict(ask.headers)
        body = ask.body
        if body is not None:
            headers.setdefault("Content-Type", "application/vnd.schemaregistry.v1+json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(ask.method, _ID.sub(self._known_id, ask.path), body, headers)
            answer = connection.getresponse()
            text = answer.read()
            media_type = answer.headers.get("Content-Type")
        finally:
            connection.close()
        return self._comparable(ask, answer.status, media_type, text)

    def _known_id(self, match: re.Match[str]) -> str:
        return str(self._ids[int(match[1]) - 1])

    def _comparable(self, ask: Ask, status: int, media_type: str | None, text: bytes) -> Json:
        try:
            body = json.loads(text) if text else None
        except ValueError:
            body = text.decode("latin-1")
        body = self._masked(body, is_write=ask.method == "POST")
        if isinstance(body, list) and ("/ids/" in ask.path or "referencedby" in ask.path):
            body = sorted((self._labelled(each) for each in body), key=str)
        if isinstance(body, dict):
            if body.get("error_code") == status and status in _HTTP_REFUSALS:
                media_type, body = None, {"error_code": status}
            if isinstance(body.get("message"), str):
                body["message"] = _OWN_WORDS.sub(r"\1", body["message"])
            if isinstance(body.get("messages"), list):
                body["messages"] = [_OWN_WORDS.sub(r"\1", each) for each in body["messages"]]
        return [status, media_type, body]

    def _labelled(self, value: Json) -> Json:
        return f"#{self._ids.index(value) + 1}" if value in self._ids else value

    def _masked(self, value: Json, *, is_write: bool) -> Json:
        if isinstance(value, list):
            return [self._masked(each, is_write=is_write) for each in value]
        if not isinstance(value, dict):
            return value
        masked: dict[str, Any] = {}
        for key, each in value.items():
            if key == "ts" or (key == "deleted" and is_write):
                continue  # Confluent's registry answers it for some of the schemas that it finds
            if key in ("id", "maxId") and isinstance(each, int):
                if each not in self._ids:
                    self._ids.append(each)
                masked[key] = self._labelled(each)
            else:
                masked[key] = self._masked(each, is_write=is_write)
        return masked
