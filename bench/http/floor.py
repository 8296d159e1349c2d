"""The floor of the HTTP programs: the same HTTP server and request metrics, answering constants. A program."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.services.http_service import Watched, listen, new_loop, serve
from headrace.services.request_metrics import RequestMetrics

SCHEMA: Final = b'{"schema":"\\"string\\"","guid":"6b1b2d1c-0000-4000-8000-000000000000"}'
WRITTEN: Final = (
    b'{"error_code":200,"cluster_id":"AAAAAAAAAAAAAAAAAAAAAA","topic_name":"bench","partition_id":0,"offset":12345,'
    b'"timestamp":"2026-01-01T00:00:00.000Z","key":{"type":"STRING","size":3},"value":{"type":"JSON","size":100}}\r\n'
)


async def by_id(_: Request) -> Response:
    return Response(SCHEMA, media_type="application/vnd.schemaregistry.v1+json")


async def produce(request: Request) -> Response:
    body = await request.body()
    return Response(WRITTEN * max(1, body.count(b'"value"')), media_type="application/json")


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    yield


async def main(port: int) -> None:
    app = Starlette(
        routes=[
            Route("/v3/clusters/{cluster}/topics/{topic}/records", produce, methods=["POST"]),
            Route("/schemas/ids/{id}", by_id, methods=["GET"]),
            Route("/healthz", by_id, methods=["GET"]),
        ],
        middleware=[Middleware(Watched, metrics=RequestMetrics("floor"))],
    )
    with listen("127.0.0.1", port) as listener:
        await serve(app, listener, lifespan=lifespan, on_ready=lambda: None)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        runner.run(main(int(sys.argv[1])))
