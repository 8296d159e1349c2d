"""Processes that validate JSON documents, so that a schema that takes too long, or too much memory, costs one record. A rim module.

Messages are msgpack with a length in front, tasks on standard input, results on standard output. A process keeps the
schemas that it has compiled; it is sent a schema only when it does not know the schema's key. It ends when its standard
input does, and the operating system ends it when a task has used up its CPU time, whoever waits for it. CPU time and not
the clock's, because a busy machine is not the schema's fault. A process that does not answer for much longer is stopped or
stuck, and is ended by who waits for it. As a program (`-m`) this module is that process.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from typing import IO, BinaryIO, Final

import msgspec

from headrace.rest.payloads.json_schema_data import SchemaDocuments, Validators
from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema

PROCESSES: Final = 4  # of which one works unless schemas take long
MAX_CPU_SECONDS: Final = 2.0
SILENCE_SECONDS: Final = 30.0  # much longer than it takes to get that CPU time on a busy machine
_MAX_MEMORY_BYTES: Final = 2 << 30
_LENGTH: Final = struct.Struct(">I")


class _Task(msgspec.Struct):
    key: bytes
    schema: SchemaDocuments | None = None  # where the process has said that it does not know it
    data: bytes | None = None  # a document; None where the schema is to be compiled only


class _Result(msgspec.Struct):
    is_unknown: bool = False  # the schema must be sent
    invalid_schema: str | None = None
    invalid_document: str | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode_task = msgspec.msgpack.Decoder(_Task).decode
_decode_result = msgspec.msgpack.Decoder(_Result).decode


class ValidatorProcesses:
    """Validation in other processes. Blocking, and safe to be used by many threads.

    Asks the process that was idle last, so that the others are started only when schemas take long.
    """

    def __init__(
        self,
        *,
        max_cpu_s: float = MAX_CPU_SECONDS,
        silence_s: float = SILENCE_SECONDS,
        count: int = PROCESSES,
    ) -> None:
        self._processes = [_ValidatorProcess(max_cpu_s, silence_s) for _ in range(count)]
        self._idle = list(self._processes)
        self._free = threading.Semaphore(count)

    def compile(self, schema: SchemaDocuments) -> None:
        """Raises UnusableSchema."""
        try:
            self._ask(schema, None)
        except NotOfSchema as unfinished:
            raise UnusableSchema(str(unfinished)) from unfinished

    def validate(self, schema: SchemaDocuments, data: bytes) -> None:
        """Raises NotOfSchema, UnusableSchema."""
        self._ask(schema, data)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.end()

    def _ask(self, schema: SchemaDocuments, data: bytes | None) -> None:
        with self._free:
            process = self._idle.pop()
            try:
                result = process.ask(_Task(schema.key, None, data))
                if result.is_unknown:
                    result = process.ask(_Task(schema.key, schema, data))
            finally:
                self._idle.append(process)
        if result.invalid_schema is not None:
            raise UnusableSchema(result.invalid_schema)
        if result.invalid_document is not None:
            raise NotOfSchema(result.invalid_document)


class _ValidatorProcess:
    """Starts the process when it is first needed, and again after it ended. Used by one thread at a time."""

    def __init__(self, max_cpu_s: float, silence_s: float) -> None:
        self._max_cpu_s = max_cpu_s
        self._silence_s = silence_s
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, task: _Task) -> _Result:
        """The result. Raises NotOfSchema where the process ended over it, or did not answer."""
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        message = _encode(task)
        deadline = time.monotonic() + self._silence_s
        try:
            _write(process.stdin, _LENGTH.pack(len(message)) + message, deadline)
            (length,) = _LENGTH.unpack(_read(process.stdout, _LENGTH.size, deadline))
            return _decode_result(_read(process.stdout, length, deadline))
        except TimeoutError:
            self.end()
            raise NotOfSchema(
                f"the process that validates by JSON Schema did not answer within {self._silence_s:g} s"
            ) from None
        except (OSError, EOFError, ValueError, msgspec.MsgspecError):
            pass  # the process has ended, or is being ended
        self.end()
        if process.returncode == -signal.SIGPROF:
            raise NotOfSchema(
                f"it was not validated by its JSON Schema within {self._max_cpu_s:g} s of CPU time"
            )
        raise NotOfSchema("the process that validated it ended: is its JSON Schema too large?")

    def end(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # has no effect on a process that has ended
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):  # what was not written is lost with the process
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(self._max_cpu_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # keys of the proxy's terminal are for the proxy
        )
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        return process


def _write(pipe: IO[bytes], message: bytes, deadline: float) -> None:
    """Raises TimeoutError, and OSError where nobody reads any more."""
    left = memoryview(message)
    while left:
        written: int | None = pipe.write(left)  # None where the pipe is full: it has no buffer
        if written is None:
            _wait(pipe, select.POLLOUT, deadline)
        else:
            left = left[written:]


def _read(pipe: IO[bytes], length: int, deadline: float) -> bytes:
    """Raises TimeoutError, and EOFError where the writer has ended."""
    found = bytearray()
    while len(found) < length:
        _wait(pipe, select.POLLIN, deadline)
        part: bytes | None = pipe.read(length - len(found))
        if part is None:  # nothing yet
            continue
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def _wait(pipe: IO[bytes], event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(pipe, event)
    if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
        raise TimeoutError


def serve(tasks: BinaryIO, results: BinaryIO, max_cpu_s: float) -> None:
    """Do tasks until there are no more."""
    validators = Validators()
    while len(head := tasks.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        message = tasks.read(length)
        if len(message) < length:
            return
        signal.setitimer(signal.ITIMER_PROF, max_cpu_s)  # SIGPROF ends the process
        result = _encode(_done(validators, _decode_task(message)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        results.write(_LENGTH.pack(len(result)) + result)
        results.flush()


def _done(validators: Validators, task: _Task) -> _Result:
    try:
        if task.schema is not None:
            validators.compile(task.schema)
        elif not validators.has(task.key):
            return _Result(is_unknown=True)
        if task.data is not None:
            validators.validate_with(task.key, task.data)
    except UnusableSchema as wrong:
        return _Result(invalid_schema=str(wrong))
    except NotOfSchema as wrong:
        return _Result(invalid_document=str(wrong))
    except Exception as limit:  # noqa: BLE001 - a schema that we do not understand costs its own records
        return _Result(invalid_document=f"it could not be validated: {limit!r}")
    return _Result()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1]))
