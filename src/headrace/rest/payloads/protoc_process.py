"""Compiles a Protobuf schema in a process of its own. A rim module.

protoc writes complaints to the process's standard error, where they would mix with the log of other threads, and a
schema that takes too long or too much memory costs that process only. As a program (`-m`) this module is that process.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from headrace.rest.payloads.schema_codec import UnusableSchema
from headrace.schemas.formats.protobuf.language import ProtobufFormat, ProtobufSchema
from headrace.schemas.formats.schema_format import InvalidSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

_MAX_SECONDS: Final = 20.0
_MAX_MEMORY_BYTES: Final = 2 << 30


class _Task(msgspec.Struct):
    text: str
    references: dict[str, str]


class _Result(msgspec.Struct):
    files: list[bytes] = []
    error: str | None = None


def compile_schema(text: str, references: Mapping[str, str]) -> list[FileDescriptorProto]:
    """The files of a schema, its own last. Blocks. Raises UnusableSchema."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=msgspec.msgpack.encode(_Task(text, dict(references))),
            stdout=subprocess.PIPE,
            timeout=_MAX_SECONDS,
            check=False,
        )
        result = msgspec.msgpack.decode(done.stdout, type=_Result)
    except subprocess.TimeoutExpired:
        raise UnusableSchema(f"it was not compiled within {_MAX_SECONDS:g} s") from None
    except msgspec.MsgspecError:
        raise UnusableSchema("the process that compiled it ended: is it too large?") from None
    if result.error is not None:
        raise UnusableSchema(result.error)
    return [FileDescriptorProto.FromString(each) for each in result.files]


def _work(task: _Task) -> _Result:
    try:
        schema = ProtobufFormat().parse(task.text, task.references, is_new=False)
    except (InvalidSchema, RecursionError, MemoryError) as wrong:
        return _Result(error=str(wrong) or type(wrong).__name__)
    assert isinstance(schema, ProtobufSchema)
    return _Result(files=[each.SerializeToString() for each in schema.files.values()])


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    found = _work(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Task))
    sys.stdout.buffer.write(msgspec.msgpack.encode(found))
