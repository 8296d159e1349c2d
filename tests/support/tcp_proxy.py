"""A TCP proxy with the faults of networks: it forwards, falls silent without closing anything, or resets and refuses.

Runs on a thread of its own. `close` ends the thread and every connection.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

_CHUNK = 1 << 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PATIENCE_S = 10


class TcpProxy:
    """Forwards connections to a port of this machine from another port, which stays the same."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._sockets: set[Any] = set()
        self._server: asyncio.Server | None = None
        self._forwarding = asyncio.Event()
        self._forwarding.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy")
        self._thread.start()
        self.port = 0
        self.allow()

    def allow(self) -> None:
        """Forward everything, also what was held back."""
        self._call(self._allow())

    def fall_silent(self) -> None:
        """Forward nothing in either direction; connections stay open, and new ones are accepted."""
        self._call(self._fall_silent())

    def refuse(self) -> None:
        """Reset every connection and refuse new ones, as if nobody listened."""
        self._call(self._refuse())

    def reset(self) -> None:
        """Reset every connection; new ones are forwarded."""
        self._call(self._reset())

    def close(self) -> None:
        self._call(self._refuse())
        self._call(self._end_pipes())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---- on the thread

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)

    async def _allow(self) -> None:
        self._forwarding.set()
        if self._server is None:
            self._server = await asyncio.start_server(
                self._accept, "127.0.0.1", self.port, reuse_address=True
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def _fall_silent(self) -> None:
        self._forwarding.clear()

    async def _refuse(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            # asyncio leaves a connection open that it sets up while its server is closed: no more of them, and time for the last.
            for listening in server.sockets:
                self._loop.remove_reader(listening.fileno())
            await asyncio.sleep(0.01)
            server.close()
        await self._reset()

    async def _reset(self) -> None:
        writers, self._writers = self._writers, set()
        for writer in writers:
            connection = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):  # closed already
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()

    async def _end_pipes(self) -> None:
        # Not the pipes alone: asyncio's own tasks set up connections that were accepted or dialled a moment ago.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # connections that were given up are closed
        await self._reset()
        while self._sockets:  # closed by the loop, one turn after they were given up
            self._sockets = {each for each in self._sockets if each.fileno() != -1}
            await asyncio.sleep(0.001)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._keep(writer)
        if (
            self._server is None
        ):  # it was accepted before connections were refused, and told of after
            writer.transport.abort()
            return
        self._start(self._dial(reader, writer))

    def _keep(self, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self._sockets.add(writer.get_extra_info("socket"))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        pipe = self._loop.create_task(work)
        self._pipes.add(pipe)
        pipe.add_done_callback(self._pipes.discard)

    async def _dial(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._forwarding.wait()
        try:
            onward = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        self._keep(onward[1])
        for source, sink in ((reader, onward[1]), (onward[0], writer)):
            self._start(self._forward(source, sink))

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                await self._forwarding.wait()
                sink.write(data)
                await sink.drain()
        await self._forwarding.wait()
        sink.close()
