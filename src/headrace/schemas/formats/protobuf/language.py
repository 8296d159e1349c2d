"""The schema language PROTOBUF: parsed by protoc (inside grpcio-tools), printed as Confluent's registry prints it.

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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from headrace.schemas.formats.protobuf.compatibility import compare_files
from headrace.schemas.formats.protobuf.extensions import without_custom_options, without_extensions
from headrace.schemas.formats.protobuf.from_descriptor import as_maps, proto_from_descriptor
from headrace.schemas.formats.protobuf.normalization import normalized_proto
from headrace.schemas.formats.protobuf.parser import parse_proto
from headrace.schemas.formats.protobuf.printer import print_proto
from headrace.schemas.formats.protobuf.proto_file import ProtoFile
from headrace.schemas.formats.protobuf.tags import change_tags, tagged_entities
from headrace.schemas.formats.schema_format import (
    MAX_DEPTH,
    Difference,
    InvalidSchema,
    TaggedEntity,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from headrace.schemas.formats.schema_format import ParsedSchema

MAIN: Final = "schema.proto"
_IMPORT_NAME: Final = re.compile(r"[A-Za-z0-9_\-.]+(/[A-Za-z0-9_\-.]+)*")
_META_FILE: Final = "confluent/meta.proto"
# In a complaint of protoc's, or in the text.
_SIGNS_OF_OTHER_FORMS: Final = ("was not found or had errors", "map_entry", "(confluent.")

# What Confluent's registry knows without a reference, beside Google's own files.
_BUILT_IN: Final = {
    "confluent/type/decimal.proto": (
        'syntax = "proto3";\npackage confluent.type;\n'
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }\n"
    ),
    "confluent/type/variant.proto": (
        'syntax = "proto3";\npackage confluent.type;\nmessage Variant { bytes metadata = 1; bytes value = 2; }\n'
    ),
    _META_FILE: (
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
        descriptor = _as_descriptor(text)
        if descriptor is not None:
            source = proto_from_descriptor(descriptor)
            return ProtobufSchema(source, _compile(print_proto(as_maps(source)), references))
        return ProtobufSchema(*_parse_text(text, references))


class ProtobufSchema:
    """A parsed file, and the descriptors of it and of the files that it imports by their names."""

    def __init__(self, source: ProtoFile, files: dict[str, FileDescriptorProto]) -> None:
        self._source = source
        self._files = files

    @property
    def file(self) -> FileDescriptorProto:
        """The descriptor of the schema itself."""
        return self._files[MAIN]

    @property
    def files(self) -> Mapping[str, FileDescriptorProto]:
        """The descriptors of the schema and of its imports."""
        return self._files

    def canonical(self) -> str:
        """The text without comments, in Confluent's layout."""
        return print_proto(self._source)

    def normalized(self) -> str:
        """The text with everything in order and every type by its full name."""
        return print_proto(normalized_proto(as_maps(self._source), self._files))

    def formatted(self, form: str) -> str:
        """`serialized`: the descriptor in base64; `ignore_extensions`: without what users add to Protobuf's options."""
        if form == "serialized":
            return self.serialized()
        if form == "ignore_extensions":
            return print_proto(without_extensions(self._source))
        return self.canonical()

    def serialized(self) -> str:
        """The descriptor in base64, as Python's clients want it."""
        return base64.b64encode(self.file.SerializeToString()).decode()

    def can_read(self, writer: ParsedSchema, *, is_lenient: bool = False) -> list[Difference]:
        """Compare by field number."""
        theirs = cast(ProtobufSchema, writer)
        return compare_files(self.file, self._files, theirs.file, theirs._files)

    def tags(self) -> list[TaggedEntity]:
        """The messages and fields with tags in Confluent's options."""
        return list(tagged_entities(self._source))

    def tagged(self, add: Sequence[TaggedEntity], remove: Sequence[TaggedEntity]) -> ParsedSchema:
        """The same schema with other tags."""
        source = change_tags(self._source, add, remove)
        return ProtobufSchema(source, self._files)

    def has_top_level_field(self, name: str) -> bool:
        """Whether the first message has a field."""
        messages = self.file.message_type
        return bool(messages) and any(field.name == name for field in messages[0].field)

    def check_fields(self) -> None:
        """protoc has checked what there is to check."""


def looks_like_descriptor(schema: str) -> bool:
    """Whether a schema is a descriptor in base64: `.proto` text has signs that base64 has not."""
    return not re.search(r"[;{\s]", schema.strip())


def _as_descriptor(schema: str) -> FileDescriptorProto | None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    if not looks_like_descriptor(schema):
        return None
    try:
        return FileDescriptorProto.FromString(base64.b64decode(schema, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return None  # protoc says what is wrong with it


def _parse_text(
    text: str, references: Mapping[str, str]
) -> tuple[ProtoFile, dict[str, FileDescriptorProto]]:
    """Confluent's registry accepts some texts that protoc does not: those are compiled in another form."""
    try:
        files = _compile(text, references)
    except InvalidSchema as refused:
        if not any(sign in str(refused) + text for sign in _SIGNS_OF_OTHER_FORMS):
            raise
        source = parse_proto(text)
        try:
            return source, _compile(print_proto(_as_accepted(source, references)), references)
        except InvalidSchema:
            raise refused from None
    return parse_proto(text), files


def _as_accepted(source: ProtoFile, references: Mapping[str, str]) -> ProtoFile:
    """The file as protoc accepts it. Maps may be written as the messages that stand for them; options of Confluent's
    may be used without their import; and imports may be missing as long as no type is taken from them, so that the
    options that they define are not looked at.
    """
    accepted = as_maps(source)
    known = {*_BUILT_IN, *references}
    imports = [each for each in source.imports if _is_known(each, known)]
    public_imports = [each for each in source.public_imports if _is_known(each, known)]
    if (imports, public_imports) != (source.imports, source.public_imports):
        accepted = without_custom_options(accepted)
    if _META_FILE not in imports:
        imports.append(_META_FILE)
    return replace(accepted, imports=imports, public_imports=public_imports)


def _is_known(name: str, known: set[str]) -> bool:
    return name in known or any(Path(root, name).is_file() for root in _include_folders())


def _include_folders() -> list[Path]:
    """Where Google's files are: those of Protobuf itself, and the common types."""
    folders = []
    for package, folder in (("grpc_tools", "_proto"), ("google.type", "../..")):
        spec = find_spec(package)
        assert spec is not None, f"{package} is installed with headrace[services]"
        folders += [Path(each, folder).resolve() for each in spec.submodule_search_locations or ()]
    return folders


def _compile(source: str, references: Mapping[str, str]) -> dict[str, FileDescriptorProto]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    _check_depth(source)
    with tempfile.TemporaryDirectory(prefix="headrace-protoc-") as folder:
        files = {**_BUILT_IN, **{name: _import_text(text) for name, text in references.items()}}
        for name, text in (*files.items(), (MAIN, source)):
            if name != MAIN or text is source:
                _place(Path(folder), name, text)
        target, complaints = Path(folder, ".descriptors"), Path(folder, ".errors")
        folders = [f"-I{each}" for each in (folder, *_include_folders())]
        words = ["protoc", *folders, "--include_imports", f"--descriptor_set_out={target}", MAIN]
        with complaints.open("wb") as sink, _standard_error_in(sink.fileno()):
            code = protoc.main(words)
        if code != 0:
            text = complaints.read_text(encoding="utf-8", errors="replace")
            raise InvalidSchema(text.replace(f"{folder}/", "").strip() or "protoc refused it")
        compiled = FileDescriptorSet.FromString(target.read_bytes())
    return {file.name: file for file in compiled.file}


def _import_text(schema: str) -> str:
    """A referenced schema as text that protoc accepts."""
    descriptor = _as_descriptor(schema)
    if descriptor is not None:
        return print_proto(as_maps(proto_from_descriptor(descriptor)))
    if any(sign in schema for sign in _SIGNS_OF_OTHER_FORMS):
        return print_proto(_as_accepted(parse_proto(schema), {}))
    return schema


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
