"""Processes that judge schemas, so that a schema that takes too long, or too much memory, costs one request. A rim module.

Messages are msgpack with a length in front, questions on standard input, judgements on standard output. The process ends
when its standard input does, so it never outlives the registry. As a program (`-m`) this module is that process.
"""

from __future__ import annotations

import asyncio
import collections
import resource
import struct
import sys
from typing import BinaryIO, Final

import msgspec

from headrace.registry.judging.judge import Judgement, Question, judge

MAX_SECONDS: Final = 20.0
_PROCESSES: Final = 4  # of which one works unless schemas take long
_MAX_MEMORY_BYTES: Final = 2 << 30
_REMEMBERED: Final = 1024
_REMEMBERED_BYTES: Final = 16 << 20
_LENGTH: Final = struct.Struct(">I")

_encode = msgspec.msgpack.Encoder().encode
_decode_question = msgspec.msgpack.Decoder(Question).decode
_decode_judgement = msgspec.msgpack.Decoder(Judgement).decode


class JudgeProcesses:
    """Asks the process that was idle last, so that the others are started only when schemas take long; remembers answers."""

    def __init__(self, *, max_seconds: float = MAX_SECONDS, count: int = _PROCESSES) -> None:
        self._processes = [JudgeProcess(max_seconds=max_seconds) for _ in range(count)]
        self._idle = list(self._processes)
        self._free = asyncio.Semaphore(count)
        self._known: collections.OrderedDict[Question, Judgement] = collections.OrderedDict()
        self._known_bytes = 0

    async def judge(self, question: Question) -> Judgement:
        """The judgement; of a schema that cannot be judged in time, that it is not valid."""
        known = self._known.get(question)
        if known is not None:
            self._known.move_to_end(question)
            return known
        async with self._free:
            process = self._idle.pop()
            try:
                judgement = await process.judge(question)
            finally:
                self._idle.append(process)
        if process.is_running:
            self._remember(question, judgement)
        return judgement

    async def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            await process.close()

    def _remember(self, question: Question, judgement: Judgement) -> None:
        size = 2 * len(question.schema.text)
        is_large = question.earlier or question.candidates or size > _REMEMBERED_BYTES // 16
        if is_large or question in self._known:
            return
        self._known[question] = judgement
        self._known_bytes += size
        while len(self._known) > _REMEMBERED or self._known_bytes > _REMEMBERED_BYTES:
            oldest, _ = self._known.popitem(last=False)
            self._known_bytes -= 2 * len(oldest.schema.text)


class JudgeProcess:
    """Starts the process when it is first needed, and again after it was ended. Ask one question at a time."""

    def __init__(self, *, max_seconds: float = MAX_SECONDS) -> None:
        self._max_seconds = max_seconds
        self._process: asyncio.subprocess.Process | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process outlived its last question."""
        return self._process is not None

    async def judge(self, question: Question) -> Judgement:
        """The judgement; of a schema that cannot be judged in time, that it is not valid."""
        try:
            async with asyncio.timeout(self._max_seconds):
                return await self._ask(question)
        except TimeoutError:
            await self._end()
            return Judgement(error=f"it could not be judged within {self._max_seconds:g} s")
        except (asyncio.IncompleteReadError, ConnectionError):
            await self._end()
            return Judgement(error="the process that judged it ended: is it too large?")
        except asyncio.CancelledError:
            await self._end()  # its answer would be taken for that to the next question
            raise

    async def close(self) -> None:
        """End the process."""
        await self._end()

    async def _ask(self, question: Question) -> Judgement:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                __name__,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        message = _encode(question)
        process.stdin.write(_LENGTH.pack(len(message)) + message)
        await process.stdin.drain()
        (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
        return _decode_judgement(await process.stdout.readexactly(length))

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


def serve(questions: BinaryIO, judgements: BinaryIO) -> None:
    """Answer questions until there are no more."""
    while len(head := questions.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        message = questions.read(length)
        if len(message) < length:
            return
        try:
            judgement = judge(_decode_question(message))
        except (RecursionError, MemoryError) as limit:
            judgement = Judgement(error=f"it is too large or nested too deeply ({limit!r})")
        except Exception as bug:  # noqa: BLE001 - a schema that we do not understand must not end the registry
            judgement = Judgement(error=f"it could not be judged: {bug!r}")
        answer = _encode(judgement)
        judgements.write(_LENGTH.pack(len(answer)) + answer)
        judgements.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    serve(sys.stdin.buffer, sys.stdout.buffer)
