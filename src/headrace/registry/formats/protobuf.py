"""Protobuf schemas: parsed by protoc (inside grpcio-tools), printed from tokens or descriptors, compared by field number.

A schema is `.proto` text or, as Python's clients send it, a base64 FileDescriptorProto. protoc reads files and reports on
the process's standard error; both happen in a directory of its own and are over when `parse` returns.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from headrace.registry.formats.proto_text import has_custom_options, print_file, tidy
from headrace.registry.formats.protobuf_compatibility import compare_files
from headrace.registry.formats.schema_format import MAX_DEPTH, Difference, InvalidSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from headrace.registry.formats.schema_format import ParsedSchema

_MAIN: Final = "schema.proto"
_IMPORT_NAME: Final = re.compile(r"[A-Za-z0-9_\-.]+(/[A-Za-z0-9_\-.]+)*")

# What Confluent's registry knows without a reference, beside Google's own files.
_BUILT_IN: Final = {
    "confluent/type/decimal.proto": (
        'syntax = "proto3";\npackage confluent.type;\n'
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }\n"
    ),
    "confluent/meta.proto": (
        'syntax = "proto3";\npackage confluent;\nimport "google/protobuf/descriptor.proto";\n'
        "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }\n"
        "extend google.protobuf.FileOptions { Meta file_meta = 1088; }\n"
        "extend google.protobuf.MessageOptions { Meta message_meta = 1088; }\n"
        "extend google.protobuf.FieldOptions { Meta field_meta = 1088; }\n"
        "extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }\n"
        "extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }\n"
    ),
}


class ProtobufFormat:
    """The language PROTOBUF."""

    NAME: Final = "PROTOBUF"

    def parse(
        self, text: str, references: Mapping[str, str], *, is_new: bool = True
    ) -> ParsedSchema:
        """Parse a schema; a reference's name is the path under which the schema imports it."""
        source = _as_text(text)
        return ProtobufSchema(source, _compile(source, references))


class ProtobufSchema:
    """A parsed file, and the files that it imports by their names."""

    def __init__(self, source: str, files: dict[str, FileDescriptorProto]) -> None:
        self._source = source
        self._files = files

    @property
    def file(self) -> FileDescriptorProto:
        """The schema itself."""
        return self._files[_MAIN]

    def canonical(self) -> str:
        """The text without comments, one statement a line."""
        return tidy(self._source)

    def normalized(self) -> str:
        """The text made from the descriptor: everything in order, every type by its full name.

        A descriptor does not name the options that users define: a schema that has some keeps its text.
        """
        if has_custom_options(self._source):
            return self.canonical()
        return print_file(self.file, sort=True)

    def serialized(self) -> str:
        """The descriptor in base64, as Python's clients want it."""
        return base64.b64encode(self.file.SerializeToString()).decode()

    def can_read(self, writer: ParsedSchema) -> list[Difference]:
        """Compare by field number."""
        theirs = cast(ProtobufSchema, writer)
        return compare_files(self.file, self._files, theirs.file, theirs._files)


def _as_text(schema: str) -> str:
    """The `.proto` text of a schema that may be a descriptor in base64."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    if re.search(r"[;{\s]", schema.strip()):
        return schema
    try:
        descriptor = FileDescriptorProto.FromString(base64.b64decode(schema, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return schema  # protoc says what is wrong with it
    return print_file(descriptor)


def _compile(source: str, references: Mapping[str, str]) -> dict[str, FileDescriptorProto]:
    import grpc_tools
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    google = Path(grpc_tools.__file__).with_name("_proto")
    _check_depth(source)
    with tempfile.TemporaryDirectory(prefix="headrace-protoc-") as folder:
        files = {**_BUILT_IN, **{name: _as_text(text) for name, text in references.items()}}
        for name, text in (*files.items(), (_MAIN, source)):
            if name != _MAIN or text is source:
                _place(Path(folder), name, text)
        target, complaints = Path(folder, ".descriptors"), Path(folder, ".errors")
        words = ["protoc", f"-I{folder}", f"-I{google}", "--include_imports"]
        with complaints.open("wb") as sink, _standard_error_in(sink.fileno()):
            code = protoc.main([*words, f"--descriptor_set_out={target}", _MAIN])
        if code != 0:
            text = complaints.read_text(encoding="utf-8", errors="replace")
            raise InvalidSchema(text.replace(f"{folder}/", "").strip() or "protoc refused it")
        compiled = FileDescriptorSet.FromString(target.read_bytes())
    return {file.name: file for file in compiled.file}


def _check_depth(source: str) -> None:
    """protoc's parser recurses; so do we, over what it finds."""
    depth = 0
    for character in source:
        depth += (character == "{") - (character == "}")
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"the schema is nested more than {MAX_DEPTH} levels deep")


def _place(folder: Path, name: str, text: str) -> None:
    if not _IMPORT_NAME.fullmatch(name) or any(part.startswith(".") for part in name.split("/")):
        raise InvalidSchema(f"'{name}' cannot be the name of a file that is imported")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class _standard_error_in:  # noqa: N801 - used as a function
    """While it is entered, what C code writes to standard error goes to another file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._saved = -1

    def __enter__(self) -> None:
        sys.stderr.flush()
        self._saved = os.dup(2)
        os.dup2(self._descriptor, 2)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._saved, 2)
        os.close(self._saved)


def message_names(file: FileDescriptorProto) -> Iterator[str]:
    """The full names of a file's messages, in the order of Confluent's message indexes."""
    prefix = f"{file.package}." if file.package else ""
    for message in file.message_type:
        yield prefix + message.name
