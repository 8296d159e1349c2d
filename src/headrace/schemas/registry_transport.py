"""HTTP exchanges with a schema registry of one or several URLs, with time-outs and retries. A rim module.

Owns the connections, which are kept open and may be used by many threads. What is asked, and what an answer means, is
left to `registry_client`.
"""

from __future__ import annotations

import base64
import http.client
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from headrace.errors import HeadraceError, SettingError

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 2.0
_IDLE_CONNECTIONS: Final = 8  # of one URL
_RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})


class RegistryUnreachable(HeadraceError):
    """No URL of the registry gave an answer in time; the message has the last reason."""


class Answer(NamedTuple):
    """What a registry answered."""

    status: int
    body: bytes


class Exchange(Protocol):
    """Sends one request to one URL. Raises OSError, http.client.HTTPException."""

    def __call__(
        self, url: SplitResult, method: str, path: str, body: bytes | None, *, timeout_s: float
    ) -> Answer:
        """The answer."""
        ...


class TransportSettings(NamedTuple):
    """Where a registry is and how long it is waited for."""

    urls: tuple[str, ...]
    request_timeout_s: float = 10.0  # of one attempt
    total_timeout_s: float = 30.0  # of all attempts and the pauses between them
    credentials: tuple[str, str] | None = None  # user and password; those of a URL count more
    ca_file: str | None = None  # certificates to trust, instead of the operating system's


class RegistryTransport:
    """Sends requests to the URL that answered last, and to the others when it fails."""

    def __init__(
        self,
        settings: TransportSettings,
        *,
        exchange: Exchange | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises SettingError for a URL that is none."""
        self._urls = parse_urls(settings.urls)
        self._settings = settings
        self._connections = None if exchange is not None else _Connections(settings)
        self._exchange: Exchange = exchange or self._connections  # type: ignore[assignment]
        self._clock = clock
        self._sleep = sleep
        self._preferred = 0

    def close(self) -> None:
        """Close the connections that are kept open."""
        if self._connections is not None:
            self._connections.close()

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """The answer of the first URL that gives one. Raises RegistryUnreachable.

        An answer that says "not now" is retried like no answer. All requests of a registry client may be repeated.
        """
        deadline = self._clock() + self._settings.total_timeout_s
        pause = _FIRST_PAUSE_S
        last: Answer | str = "no time to ask"
        while True:
            first = self._preferred
            for offset in range(len(self._urls)):
                index = (first + offset) % len(self._urls)
                url = self._urls[index]
                timeout_s = min(self._settings.request_timeout_s, deadline - self._clock())
                if timeout_s <= 0:
                    break
                try:
                    answer = self._exchange(url, method, path, body, timeout_s=timeout_s)
                except (OSError, http.client.HTTPException) as trouble:
                    last = f"{origin(url)}: {trouble or type(trouble).__name__}"
                    continue
                if answer.status not in _RETRIED:
                    self._preferred = index
                    return answer
                last = answer
            wait = pause * (0.5 + random.random() / 2)
            if self._clock() + wait >= deadline:
                break
            self._sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        if isinstance(last, Answer):
            return last
        raise RegistryUnreachable(f"the schema registry does not answer: {last}")


def parse_urls(urls: Sequence[str]) -> list[SplitResult]:
    """The URLs of a registry. Raises SettingError."""
    parsed = []
    for text in urls:
        try:
            url = urlsplit(text.strip().rstrip("/"))
            port_is_valid = url.port is None or url.port > 0
        except ValueError:
            port_is_valid = False
        if not port_is_valid or url.scheme not in ("http", "https") or not url.hostname:
            raise SettingError(
                f"{text!r} is not a schema registry's URL: expected http://host:port"
            )
        parsed.append(url)
    if not parsed:
        raise SettingError("a schema registry needs at least one URL")
    return parsed


def origin(url: SplitResult) -> str:
    """A URL without the password that it may contain."""
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    return f"{url.scheme}://{host}" + (f":{url.port}" if url.port else "") + url.path


class _Connections:
    """Open connections by URL. A connection is used by one thread at a time."""

    def __init__(self, settings: TransportSettings) -> None:
        self._credentials = settings.credentials
        self._idle: dict[SplitResult, list[http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._ca_file = settings.ca_file

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def __call__(
        self, url: SplitResult, method: str, path: str, body: bytes | None, *, timeout_s: float
    ) -> Answer:
        with self._lock:
            idle = self._idle.get(url)
            connection = idle.pop() if idle else None
        if connection is not None:
            try:
                return self._on(connection, url, method, path, body, timeout_s=timeout_s)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                pass  # the registry closed it while it was idle; a new connection tells whether it is there
        return self._on(self._connect(url), url, method, path, body, timeout_s=timeout_s)

    def _connect(self, url: SplitResult) -> http.client.HTTPConnection:
        assert url.hostname is not None
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname, url.port)
        with self._lock:
            if self._context is None:
                self._context = ssl.create_default_context(cafile=self._ca_file)
        return http.client.HTTPSConnection(url.hostname, url.port, context=self._context)

    def _on(
        self,
        connection: http.client.HTTPConnection,
        url: SplitResult,
        method: str,
        path: str,
        body: bytes | None,
        *,
        timeout_s: float,
    ) -> Answer:
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        try:
            connection.request(method, url.path + path, body, self._headers(url, body))
            found = connection.getresponse()
            content = found.read(_MAX_ANSWER_BYTES + 1)
        except BaseException:
            connection.close()
            raise
        if len(content) > _MAX_ANSWER_BYTES:
            connection.close()
            raise http.client.HTTPException("the answer is too long")
        if found.will_close:
            connection.close()
        else:
            self._keep(url, connection)
        return Answer(found.status, content)

    def _keep(self, url: SplitResult, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            idle = self._idle.setdefault(url, [])
            if len(idle) < _IDLE_CONNECTIONS:
                idle.append(connection)
                return
        connection.close()

    def _headers(self, url: SplitResult, body: bytes | None) -> Mapping[str, str]:
        headers = {"Accept": MEDIA_TYPE}
        if body is not None:
            headers["Content-Type"] = MEDIA_TYPE
        credentials = self._credentials
        if url.username is not None:
            credentials = (unquote(url.username), unquote(url.password or ""))
        if credentials is not None:
            token = base64.b64encode(":".join(credentials).encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        return headers
