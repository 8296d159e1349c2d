"""Compatibility of Protobuf schemas, by field number, with the names of Confluent's differences. Pure.

`compare_files(reader, …, writer, …)` lists what keeps the reader from reading what the writer wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.registry.formats.schema_format import Difference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )

_REQUIRED, _REPEATED = 2, 3
_MESSAGE_TYPES: Final = (10, 11)
_ENUM: Final = 14
# Types of one group have the same bytes on the wire.
_GROUPS: Final = {
    **dict.fromkeys((5, 3, 13, 4, 8, _ENUM), "varint"),
    **dict.fromkeys((17, 18), "zigzag"),
    **dict.fromkeys((7, 15), "fixed32"),
    **dict.fromkeys((6, 16), "fixed64"),
    **dict.fromkeys((9, 12), "bytes"),
    2: "float",
    1: "double",
}


def compare_files(
    reader: FileDescriptorProto,
    reader_files: Mapping[str, FileDescriptorProto],
    writer: FileDescriptorProto,
    writer_files: Mapping[str, FileDescriptorProto],
) -> list[Difference]:
    """What keeps data of the writer's schema from being read with the reader's."""
    comparison = _Comparison(_Types(reader_files), _Types(writer_files))
    if reader.package != writer.package:
        comparison.note(
            "PACKAGE_CHANGED",
            "#/",
            "The package of the {reader} schema does not match the {writer} one",
        )
    comparison.compare_messages(
        {each.name: each for each in writer.message_type},
        {each.name: each for each in reader.message_type},
        _prefix(writer),
        _prefix(reader),
        "#/",
    )
    return comparison.differences


def _prefix(file: FileDescriptorProto) -> str:
    return f".{file.package}" if file.package else ""


class _Types:
    """The messages of a schema and of what it imports, by full name."""

    def __init__(self, files: Mapping[str, FileDescriptorProto]) -> None:
        self.messages: dict[str, DescriptorProto] = {}
        self.enums: dict[str, EnumDescriptorProto] = {}
        for file in files.values():
            for enum in file.enum_type:
                self.enums[f"{_prefix(file)}.{enum.name}"] = enum
            for message in file.message_type:
                self._add(_prefix(file), message)

    def _add(self, prefix: str, message: DescriptorProto) -> None:
        name = f"{prefix}.{message.name}"
        self.messages[name] = message
        for nested in message.nested_type:
            self._add(name, nested)


class _Kind(NamedTuple):
    name: str  # scalar, message or map
    detail: str


class _Comparison:
    """Walks through both schemas. Messages under way are not looked at again: types may be recursive."""

    def __init__(self, reader: _Types, writer: _Types) -> None:
        self._reader = reader
        self._writer = writer
        self._seen: set[tuple[str, str]] = set()
        self.differences: list[Difference] = []

    def note(self, kind: str, path: str, text: str) -> None:
        self.differences.append(
            Difference(kind, path, f"{text} (path ''{path}'')".replace("''", "'"))
        )

    def compare_messages(
        self,
        writer: Mapping[str, DescriptorProto],
        reader: Mapping[str, DescriptorProto],
        writer_prefix: str,
        reader_prefix: str,
        path: str,
    ) -> None:
        for name, message in writer.items():
            if message.options.map_entry:
                continue
            where = f"{path}{name}"
            if name not in reader:
                self.note(
                    "MESSAGE_REMOVED",
                    where,
                    "The {reader} schema lacks a message of the {writer} schema",
                )
                continue
            self._compare_message(f"{writer_prefix}.{name}", f"{reader_prefix}.{name}", where)

    def _compare_message(self, writer_name: str, reader_name: str, path: str) -> None:
        if (writer_name, reader_name) in self._seen:
            return
        self._seen.add((writer_name, reader_name))
        writer, reader = self._writer.messages[writer_name], self._reader.messages[reader_name]
        self.compare_messages(
            {each.name: each for each in writer.nested_type},
            {each.name: each for each in reader.nested_type},
            writer_name,
            reader_name,
            f"{path}/",
        )
        old = {each.number: each for each in writer.field}
        new = {each.number: each for each in reader.field}
        for number, field in old.items():
            where = f"{path}/{number}"
            if number in new:
                self._compare_field(field, new[number], where)
            elif field.label == _REQUIRED:
                self.note(
                    "REQUIRED_FIELD_REMOVED",
                    where,
                    "The {reader} schema lacks a required field of the {writer} schema",
                )
        for number, field in new.items():
            if number not in old and field.label == _REQUIRED:
                self.note(
                    "REQUIRED_FIELD_ADDED",
                    f"{path}/{number}",
                    "The {reader} schema has a required field that the {writer} schema lacks",
                )
        self._compare_oneofs(writer, reader, path)

    def _compare_oneofs(self, writer: DescriptorProto, reader: DescriptorProto, path: str) -> None:
        old, new = _oneofs(writer), _oneofs(reader)
        for name, numbers in old.items():
            if name in new and numbers - new[name]:
                self.note(
                    "ONEOF_FIELD_REMOVED",
                    f"{path}/{name}",
                    "The {reader} schema lacks a field of a oneof of the {writer} schema",
                )
        writer_numbers = {each.number for each in writer.field}
        in_oneof = set().union(*old.values()) if old else set()
        for name, numbers in new.items():
            moved = (numbers & writer_numbers) - in_oneof
            if len(moved) > 1:
                self.note(
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
                    f"{path}/{name}",
                    "Several fields of the {writer} schema are in a oneof of the {reader} schema",
                )
            elif moved and (name in old or numbers & in_oneof):
                self.note(
                    "FIELD_MOVED_TO_EXISTING_ONEOF",
                    f"{path}/{name}",
                    "A field of the {writer} schema is in a oneof of the {reader} schema that has others",
                )

    def _compare_field(
        self, writer: FieldDescriptorProto, reader: FieldDescriptorProto, path: str
    ) -> None:
        old, new = self._kind(writer, self._writer), self._kind(reader, self._reader)
        if old.name != new.name:
            self.note(
                "FIELD_KIND_CHANGED",
                path,
                "The kind of a field differs between the {reader} and the {writer} schema",
            )
            return
        if old.name == "scalar" and old.detail != new.detail:
            self.note(
                "FIELD_SCALAR_KIND_CHANGED",
                path,
                "The scalar kind of a field differs between the {reader} and the {writer} schema",
            )
        elif old.name == "message":
            if old.detail.rpartition(".")[2] != new.detail.rpartition(".")[2]:
                self.note(
                    "FIELD_NAMED_TYPE_CHANGED",
                    path,
                    "The type of a field differs between the {reader} and the {writer} schema",
                )
            else:
                self._compare_message(writer.type_name, reader.type_name, path)
        elif old.name == "map":
            before = self._writer.messages[writer.type_name].field
            after = self._reader.messages[reader.type_name].field
            for old_part, new_part in zip(before, after, strict=True):
                self._compare_field(old_part, new_part, path)
            return
        is_relabelled = (writer.label == _REPEATED) != (reader.label == _REPEATED)
        if is_relabelled and old.name == "scalar" and _GROUPS[writer.type] != "bytes":
            self.note(
                "FIELD_NUMERIC_LABEL_CHANGED",
                path,
                "The label of a numeric field differs between the {reader} and the {writer} schema",
            )
        if (writer.label == _REQUIRED) != (reader.label == _REQUIRED):
            kind = "REQUIRED_FIELD_ADDED" if reader.label == _REQUIRED else "REQUIRED_FIELD_REMOVED"
            self.note(
                kind,
                path,
                "A field is required in one of the {reader} and the {writer} schema only",
            )

    def _kind(self, field: FieldDescriptorProto, types: _Types) -> _Kind:
        if field.type not in _MESSAGE_TYPES:
            return _Kind("scalar", _GROUPS[field.type])
        message = types.messages.get(field.type_name)
        if message is not None and message.options.map_entry:
            return _Kind("map", "")
        return _Kind("message", field.type_name)


def _oneofs(message: DescriptorProto) -> dict[str, set[int]]:
    """The field numbers of each oneof that was written as one."""
    found: dict[str, set[int]] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            found.setdefault(message.oneof_decl[field.oneof_index].name, set()).add(field.number)
    return found
