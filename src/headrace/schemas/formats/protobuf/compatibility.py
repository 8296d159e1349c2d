"""Compatibility of Protobuf schemas, by field number, with the rules and the names of Confluent's registry. Pure.

`compare_files(reader, …, writer, …)` lists what keeps the reader from reading what the writer wrote. Groups and
extensions are not compared, as with Confluent's registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.schemas.formats.schema_format import Difference

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )

_REQUIRED, _REPEATED = 2, 3
_GROUP, _MESSAGE, _ENUM = 10, 11, 14
# Types of one group have the same bytes on the wire.
_KINDS: Final = {
    **dict.fromkeys((5, 3, 13, 4, 8, _ENUM), "general number"),
    **dict.fromkeys((17, 18), "signed number"),
    **dict.fromkeys((7, 15), "fixed32"),
    **dict.fromkeys((6, 16), "fixed64"),
    **dict.fromkeys((9, 12), "string or bytes"),
    2: "float",
    1: "double",
}
_TEXTS: Final = {
    "PACKAGE_CHANGED": "The package at '{path}' in the {{reader}} schema does not match the package in the {{writer}} schema",
    "MESSAGE_REMOVED": "The {{reader}} schema is missing a MESSAGE type at path '{path}' in the {{writer}} schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the {{reader}} schema does not match the {{writer}} schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{path}' in the {{reader}} schema does not match its "
    "kind in the {{writer}} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{path}' in the {{reader}} schema does not match its "
    "type in the {{writer}} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{path}' in the {{reader}} schema does not match "
    "its label in the {{writer}} schema",
    "REQUIRED_FIELD_ADDED": "A required field  at path '{path}' in the {{reader}} schema is missing in the {{writer}} schema",
    "REQUIRED_FIELD_REMOVED": "The {{reader}} schema is missing a required field at path: '{path}' in the {{writer}} schema",
    "ONEOF_FIELD_REMOVED": "The {{reader}} schema is missing a oneof field at path '{path}' in the {{writer}} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{path}' in the {{reader}} schema are outside a "
    "oneof in the {{writer}} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{path}' in the {{reader}} schema is outside an existing "
    "oneof in the {{writer}} schema",
}  # fmt: skip


def compare_files(
    reader: FileDescriptorProto,
    reader_files: Mapping[str, FileDescriptorProto],
    writer: FileDescriptorProto,
    writer_files: Mapping[str, FileDescriptorProto],
) -> list[Difference]:
    """What keeps data of the writer's schema from being read with the reader's."""
    comparison = _Comparison(_Types(reader_files), _Types(writer_files), reader.name)
    if reader.package != writer.package:
        comparison.note("PACKAGE_CHANGED", "#/")
    comparison.compare_messages(
        writer.message_type, reader.message_type, _prefix(writer), _prefix(reader), "#/"
    )
    return comparison.differences


def _prefix(file: FileDescriptorProto) -> str:
    return f".{file.package}" if file.package else ""


class _Type(NamedTuple):
    """A message, with the name that it has in its package, and the file that it is defined in."""

    message: DescriptorProto
    local_name: str
    file: FileDescriptorProto


class _Types:
    """The messages of a schema and of what it imports, by full name."""

    def __init__(self, files: Mapping[str, FileDescriptorProto]) -> None:
        self.messages: dict[str, _Type] = {}
        for file in files.values():
            for message in file.message_type:
                self._add(file, "", message)

    def _add(self, file: FileDescriptorProto, scope: str, message: DescriptorProto) -> None:
        local_name = scope + message.name
        self.messages[f"{_prefix(file)}.{local_name}"] = _Type(message, local_name, file)
        for nested in message.nested_type:
            self._add(file, f"{local_name}.", nested)

    def label(self, field: FieldDescriptorProto, owner: _Type) -> int | None:
        """The label that is written at a field; None where there is none."""
        is_written = field.label in (_REQUIRED, _REPEATED) or field.proto3_optional
        is_proto3 = owner.file.syntax == "proto3"
        if is_written or not (is_proto3 or field.HasField("oneof_index")):
            return field.label
        return None


class _Comparison:
    """Walks through both schemas. A message under way is not compared again: types may be recursive."""

    def __init__(
        self, reader: _Types, writer: _Types, main: str, under_way: frozenset[str] = frozenset()
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._main = main  # the name of the schema's own file
        self._under_way = set(under_way)
        self.differences: list[Difference] = []

    def note(self, kind: str, path: str) -> None:
        self.differences.append(Difference(kind, path, _TEXTS[kind].format(path=path), quote='"'))

    def compare_messages(
        self,
        writer: Iterable[DescriptorProto],
        reader: Iterable[DescriptorProto],
        writer_prefix: str,
        reader_prefix: str,
        path: str,
    ) -> None:
        known = {each.name for each in reader}
        for message in writer:
            where = f"{path}{message.name}"
            if message.name in known:
                name = f".{message.name}"
                self.compare_message(writer_prefix + name, reader_prefix + name, where)
            else:
                self.note("MESSAGE_REMOVED", where)

    def compare_message(self, writer_name: str, reader_name: str, path: str) -> None:
        writer = self._writer.messages[writer_name]
        reader = self._reader.messages[reader_name]
        is_new = writer_name not in self._under_way
        self._under_way.add(writer_name)
        if is_new:
            self._compare_fields(writer, reader, path)
        self.compare_messages(
            _nested(writer.message),
            _nested(reader.message),
            writer_name,
            reader_name,
            f"{path}/",
        )
        if is_new:
            self._under_way.discard(writer_name)

    def _compare_fields(self, writer: _Type, reader: _Type, path: str) -> None:
        old = {each.number: each for each in writer.message.field if each.type != _GROUP}
        new = {each.number: each for each in reader.message.field if each.type != _GROUP}
        old_oneofs, new_oneofs = _oneofs(writer.message), _oneofs(reader.message)
        self._compare_oneofs(old, old_oneofs, new_oneofs, path)
        old_oneof = {number: name for name, numbers in old_oneofs.items() for number in numbers}
        new_oneof = {number: name for name, numbers in new_oneofs.items() for number in numbers}
        gone = {
            name
            for name, numbers in old_oneofs.items()
            if name not in new_oneofs and not numbers & new.keys()
        }
        for number in sorted(old.keys() | new.keys()):
            if number not in new:
                if number in old_oneof:
                    if old_oneof[number] not in gone:
                        self.note("ONEOF_FIELD_REMOVED", f"{path}/{old_oneof[number]}/{number}")
                elif old[number].label == _REQUIRED:
                    self.note("REQUIRED_FIELD_REMOVED", f"{path}/{number}")
            elif number not in old:
                if number not in new_oneof and new[number].label == _REQUIRED:
                    self.note("REQUIRED_FIELD_ADDED", f"{path}/{number}")
            else:
                inside = f"/{new_oneof[number]}" if number in new_oneof else ""
                labels = (
                    self._writer.label(old[number], writer),
                    self._reader.label(new[number], reader),
                )
                self._compare_field(old[number], new[number], labels, f"{path}{inside}/{number}")

    def _compare_oneofs(
        self,
        old: Mapping[int, FieldDescriptorProto],
        old_oneofs: Mapping[str, set[int]],
        new_oneofs: Mapping[str, set[int]],
        path: str,
    ) -> None:
        """Fields of which several could be set must not exclude each other now."""
        old_oneof = {number: name for name, numbers in old_oneofs.items() for number in numbers}
        for name, numbers in new_oneofs.items():
            moved = {number for number in numbers if number in old and number not in old_oneof}
            groups = {old_oneof[number] for number in numbers if number in old_oneof}
            if len(moved) + len(groups) > 1:
                several = len(moved) > 1
                kind = (
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if several else "FIELD_MOVED_TO_EXISTING_ONEOF"
                )
                self.note(kind, f"{path}/{name}")

    def _compare_field(
        self,
        writer: FieldDescriptorProto,
        reader: FieldDescriptorProto,
        labels: tuple[int | None, int | None],
        path: str,
    ) -> None:
        old, new = _shape(writer, self._writer), _shape(reader, self._reader)
        if old != new:
            self.note("FIELD_KIND_CHANGED", path)
        elif old == "scalar":
            self._compare_scalars(writer, reader, labels, path)
        elif old == "map":
            before = self._writer.messages[writer.type_name].message.field
            after = self._reader.messages[reader.type_name].message.field
            for old_part, new_part in zip(before, after, strict=True):
                self._compare_field(old_part, new_part, (None, None), path)
        else:
            self._compare_named(writer.type_name, reader.type_name, path)

    def _compare_scalars(
        self,
        writer: FieldDescriptorProto,
        reader: FieldDescriptorProto,
        labels: tuple[int | None, int | None],
        path: str,
    ) -> None:
        kind = _KINDS[writer.type]
        if kind != _KINDS[reader.type]:
            self.note("FIELD_SCALAR_KIND_CHANGED", path)
        elif None not in labels and labels[0] != labels[1] and kind != "string or bytes":
            self.note("FIELD_NUMERIC_LABEL_CHANGED", path)

    def _compare_named(self, writer_name: str, reader_name: str, path: str) -> None:
        writer, reader = self._writer.messages[writer_name], self._reader.messages[reader_name]
        local_name = writer.local_name
        if local_name != reader.local_name:
            self.note("FIELD_NAMED_TYPE_CHANGED", path)
            return
        if writer.file.name == reader.file.name == self._main or writer.file == reader.file:
            return  # it is compared where it is defined, or it is the same
        inner = _Comparison(self._reader, self._writer, self._main, frozenset(self._under_way))
        inner.compare_message(writer_name, reader_name, f"#/{local_name.replace('.', '/')}")
        self.differences += inner.differences
        if inner.differences:
            self.note("FIELD_NAMED_TYPE_CHANGED", path)


def _shape(field: FieldDescriptorProto, types: _Types) -> str:
    if field.type not in (_GROUP, _MESSAGE):
        return "scalar"
    is_map = types.messages[field.type_name].message.options.map_entry
    return "map" if is_map else "message"


def _nested(message: DescriptorProto) -> list[DescriptorProto]:
    """The messages that were written as such: maps and groups have some of their own."""
    groups = {each.type_name.rpartition(".")[2] for each in message.field if each.type == _GROUP}
    return [
        each
        for each in message.nested_type
        if not each.options.map_entry and each.name not in groups
    ]


def _oneofs(message: DescriptorProto) -> dict[str, set[int]]:
    """The field numbers of each oneof that was written as one."""
    found: dict[str, set[int]] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            found.setdefault(message.oneof_decl[field.oneof_index].name, set()).add(field.number)
    return found
