"""A `.proto` file made from a descriptor, as Confluent's registry writes it for clients that send descriptors. Pure.

Maps stay the messages that a descriptor has for them (`as_maps` makes maps of them). Options that users define are not in
a descriptor by their names, and are left out; the ones that Confluent defines are known.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from headrace.schemas.formats.protobuf.proto_file import (
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
    Value,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
        MethodDescriptorProto,
        ServiceDescriptorProto,
    )

_SCALARS: Final = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
_STRING, _BYTES = 9, 12
_REQUIRED, _REPEATED = 2, 3
_FILE_OPTIONS: Final = (
    "java_package", "java_outer_classname", "java_multiple_files", "java_generate_equals_and_hash",
    "java_string_check_utf8", "optimize_for", "go_package", "cc_generic_services", "java_generic_services",
    "py_generic_services", "deprecated", "cc_enable_arenas", "objc_class_prefix", "csharp_namespace", "swift_prefix",
    "php_class_prefix", "php_namespace", "php_metadata_namespace", "ruby_package", "features",
)  # fmt: skip
_META_NUMBER: Final = 1088  # of the options that Confluent defines


def proto_from_descriptor(file: FileDescriptorProto) -> ProtoFile:
    """The file that a descriptor describes."""
    file = _plain_class().FromString(file.SerializeToString())
    is_proto3 = file.syntax == "proto3"
    names = {"public": set(file.public_dependency), "weak": set(file.weak_dependency)}
    dependencies = list(enumerate(file.dependency))
    special = names["public"] | names["weak"]
    options = _options(file.options, "file_meta")
    options.sort(key=lambda each: _place(each.name))
    return ProtoFile(
        syntax="proto3" if is_proto3 else None,
        package=file.package or None,
        imports=[name for index, name in dependencies if index not in special],
        public_imports=[name for index, name in dependencies if index in names["public"]],
        weak_imports=[name for index, name in dependencies if index in names["weak"]],
        options=options,
        messages=[_message(each, is_proto3=is_proto3) for each in file.message_type],
        enums=[_enum(each) for each in file.enum_type],
        extends=_extends(file.extension, is_proto3=is_proto3),
        services=[_service(each) for each in file.service],
    )


def _place(name: str) -> int:
    return _FILE_OPTIONS.index(name) if name in _FILE_OPTIONS else len(_FILE_OPTIONS)


def _message(message: DescriptorProto, *, is_proto3: bool) -> Message:
    oneofs = [OneOf(each.name, options=_options(each.options)) for each in message.oneof_decl]
    fields: list[Field] = []
    for each in message.field:
        if each.HasField("oneof_index") and not each.proto3_optional:
            field = replace(_field(each, is_proto3=is_proto3), label=None)
            oneofs[each.oneof_index].fields.append(field)
        else:
            fields.append(_field(each, is_proto3=is_proto3))
    ranges = ((each.start, each.end - 1, each.options) for each in message.extension_range)
    return Message(
        message.name,
        fields=fields,
        oneofs=[each for each in oneofs if each.fields],
        messages=[_message(each, is_proto3=is_proto3) for each in message.nested_type],
        enums=[_enum(each) for each in message.enum_type],
        extends=_extends(message.extension, is_proto3=is_proto3),
        extensions=[
            Extensions([_range(start, end)], _options(options)) for start, end, options in ranges
        ],
        reserved=[
            *(Reserved([_range(each.start, each.end - 1)]) for each in message.reserved_range),
            *(Reserved([name]) for name in message.reserved_name),
        ],
        options=_options(message.options, "message_meta"),
    )


def _field(field: FieldDescriptorProto, *, is_proto3: bool) -> Field:
    label: str | None = None
    if field.label == _REPEATED:
        label = "repeated"
    elif field.label == _REQUIRED:
        label = "required"
    elif field.proto3_optional or not is_proto3:
        label = "optional"
    options = _options(field.options, "field_meta")
    if field.HasField("default_value"):
        text = field.default_value
        is_text = field.type in (_STRING, _BYTES)
        options.append(Option("default", text if is_text else Word(text)))
    if field.HasField("json_name"):
        options.append(Option("json_name", field.json_name))
    type_name = _SCALARS.get(field.type) or field.type_name
    return Field(label, type_name, field.name, field.number, options)


def _enum(enum: EnumDescriptorProto) -> Enum:
    return Enum(
        enum.name,
        [
            Constant(each.name, each.number, _options(each.options, "enum_value_meta"))
            for each in enum.value
        ],
        _options(enum.options, "enum_meta"),
        [
            *(Reserved([_range(each.start, each.end)]) for each in enum.reserved_range),
            *(Reserved([name]) for name in enum.reserved_name),
        ],
    )


def _extends(extensions: Iterable[FieldDescriptorProto], *, is_proto3: bool) -> list[Extend]:
    by_extended: dict[str, list[Field]] = {}
    for each in extensions:
        by_extended.setdefault(each.extendee, []).append(_field(each, is_proto3=is_proto3))
    return [Extend(name, fields) for name, fields in by_extended.items()]


def _service(service: ServiceDescriptorProto) -> Service:
    rpcs = [_rpc(each) for each in service.method]
    return Service(service.name, rpcs, _options(service.options))


def _rpc(method: MethodDescriptorProto) -> Rpc:
    return Rpc(
        method.name,
        method.input_type,
        method.output_type,
        method.client_streaming,
        method.server_streaming,
        _options(method.options),
    )


def _range(start: int, end: int) -> int | Range:
    return start if start == end else Range(start, end)


# ---- options


def _options(options: Any, meta: str = "") -> list[Option]:
    """The options that Protobuf itself defines, and, under the name `meta`, the one that Confluent defines."""
    written = []
    for field, value in options.ListFields():
        if field.name != "uninterpreted_option":
            values = value if _is_repeated(field) else [value]
            written += [Option(field.name, _value(field, each)) for each in values]
    if meta:
        written += _meta(options, meta)
    return written


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == _REPEATED


def _value(field: Any, value: Any) -> Value:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return Word(str(value) if known is None else known.name)
    if isinstance(value, bool):
        return Word("true" if value else "false")
    if isinstance(value, str):
        return value
    if field.message_type is not None:
        return {
            each.name: [_value(each, one) for one in found]
            if _is_repeated(each)
            else _value(each, found)
            for each, found in value.ListFields()
        }
    return Word(str(value))


def _meta(options: Any, name: str) -> list[Option]:
    from google.protobuf.unknown_fields import UnknownFieldSet

    fields: Any = UnknownFieldSet(options)
    for unknown in fields:
        if unknown.field_number == _META_NUMBER and isinstance(unknown.data, bytes):
            return [Option(f"confluent.{name}", _meta_value(unknown.data), is_extension=True)]
    return []


def _meta_value(data: bytes) -> dict[str, Value]:
    meta = _meta_class().FromString(data)
    found: dict[str, Value] = {}
    if meta.doc:
        found["doc"] = meta.doc
    if meta.params:
        found["params"] = [{"key": each.key, "value": each.value} for each in meta.params]
    if meta.tags:
        found["tags"] = list(meta.tags)
    return found


@functools.cache
def _plain_class() -> Any:
    """FileDescriptorProto as Protobuf defines it: other modules of a process may have extended its options."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    found = pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto")
    return message_factory.GetMessageClass(found)


@functools.cache
def _meta_class() -> Any:
    """`confluent.Meta`, whose map is read as the pairs that it consists of."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="meta.proto", package="meta", syntax="proto3")
    pair = file.message_type.add(name="Pair")
    meta = file.message_type.add(name="Meta")
    for number, name in enumerate(("key", "value"), 1):
        pair.field.add(name=name, number=number, type=_STRING, label=1)
    meta.field.add(name="doc", number=1, type=_STRING, label=1)
    meta.field.add(name="params", number=2, type=11, type_name=".meta.Pair", label=_REPEATED)
    meta.field.add(name="tags", number=3, type=_STRING, label=_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("meta.Meta"))


# ---- maps


def as_maps(file: ProtoFile) -> ProtoFile:
    """The same file with maps where it has the messages that stand for them, which protoc does not accept as text."""
    return replace(file, messages=[_with_maps(each) for each in file.messages])


def _with_maps(message: Message) -> Message:
    entries = {each.name: each for each in message.messages if _is_map_entry(each)}

    def as_map(field: Field) -> Field:
        entry = entries.get(field.type.rpartition(".")[2])
        if entry is None or field.label != "repeated":
            return field
        types = {each.name: each.type for each in entry.fields}
        type_name = f"map<{types.get('key')}, {types.get('value')}>"
        return replace(field, label=None, type=type_name)

    return replace(
        message,
        fields=[as_map(each) for each in message.fields],
        messages=[_with_maps(each) for each in message.messages if each.name not in entries],
    )


def _is_map_entry(message: Message) -> bool:
    return any(each.name == "map_entry" and each.value == Word("true") for each in message.options)
