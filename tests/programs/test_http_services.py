"""What every HTTP program does: here one that says who asks, served over TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from headrace.services.authentication import Authentication, Principal, principal_of
from headrace.services.http_service import Watched, listen, serve
from headrace.services.request_metrics import RequestMetrics
from headrace.services.tls import ClientCertificate, TlsSettings
from tests.support.certificates import Authority


async def _who(request: Request) -> Response:
    return PlainTextResponse(str(principal_of(request)))


async def _by_header(scope: Scope) -> Principal | Response:
    user = Request(scope).headers.get("user")
    return Principal(user) if user else Response(status_code=401)


@asynccontextmanager
async def _https(tls: TlsSettings, metrics: RequestMetrics) -> AsyncIterator[int]:
    app = Starlette(
        routes=[Route("/who", _who)],
        middleware=[
            Middleware(Watched, metrics=metrics),
            Middleware(Authentication, authenticate=_by_header),
        ],
    )
    ready = asyncio.Event()

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        yield

    with listen("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(
            serve(app, listener, lifespan=lifespan, on_ready=ready.set, tls=tls.make_context())
        )
        await ready.wait()
        yield listener.getsockname()[1]
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def _get(port: int, client: ssl.SSLContext, headers: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
    try:
        writer.write(f"GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


async def _is_turned_away(port: int, client: ssl.SSLContext) -> bool:
    """Whether the connection ends without an answer, with an alert or without one."""
    try:
        return await _get(port, client, "User: alice\r\n") == b""
    except OSError:
        return True


def test_a_program_over_tls_knows_who_asks(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server, user = authority.issue("server"), authority.issue("user")
    tls = TlsSettings(
        certificate_file=server.certificate_file,
        key_file=server.key_file,
        ca_file=authority.ca_file,
        client_certificate=ClientCertificate.REQUIRED,
    )
    stranger = ssl.create_default_context(cafile=authority.ca_file)
    client = ssl.create_default_context(cafile=authority.ca_file)
    client.load_cert_chain(user.certificate_file, user.key_file)
    metrics = RequestMetrics("test")

    async def story() -> None:
        async with _https(tls, metrics) as port:
            known = await _get(port, client, "User: alice\r\n")
            assert known.startswith(b"HTTP/1.1 200")
            assert known.endswith(b"User:alice")
            assert (await _get(port, client, "")).startswith(b"HTTP/1.1 401")
            assert await _is_turned_away(port, stranger)

    asyncio.run(story())
    assert 'test_http_requests_total{method="GET",route="/who",status="200"} 1' in metrics.lines()
