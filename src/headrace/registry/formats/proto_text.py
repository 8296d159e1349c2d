"""Text of Protobuf schemas: a tidy form of `.proto` text, made from its tokens, and `.proto` text made from a descriptor. Pure.

Confluent's registry compares schemas after parsing and printing them, so that comments and layout do not count. `tidy`
does the same with the tokens, and so keeps every name and option as its author wrote it.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final

from headrace.registry.formats.schema_format import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
        ServiceDescriptorProto,
    )

_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""
    r"""|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>[A-Za-z0-9_.+\-]+)"""
    r"""|(?P<sign>[{}()\[\]<>;,=:/])""",
    re.DOTALL,
)
_INDENT: Final = "  "
_NO_SPACE_BEFORE: Final = frozenset(";,)]>:")
_NO_SPACE_AFTER: Final = frozenset("([<")

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
_GROUP: Final = 10
_MESSAGE: Final = 11
_REQUIRED, _REPEATED = 2, 3
_HIGHEST_TAG: Final = 536_870_911


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidSchema(f"unexpected character {text[position]!r} at {position}")
        if match.lastgroup is not None:
            tokens.append(match[0])
        position = match.end()
    return tokens


def tidy(text: str) -> str:
    """The same schema without comments, one statement a line, indented by its blocks."""
    lines: list[str] = []
    line: list[str] = []
    depth = brackets = 0
    for sign in _tokens(text):
        if sign in "([":
            brackets += 1
        elif sign in ")]":
            brackets -= 1
        if sign == "}" and not brackets:
            if line:
                lines.append(_INDENT * depth + _joined(line))
                line = []
            depth = max(depth - 1, 0)
            lines.append(f"{_INDENT * depth}}}")
            continue
        line.append(sign)
        if not brackets and sign in ("{", ";"):
            if line != [";"]:  # an empty statement
                lines.append(_INDENT * depth + _joined(line))
            line = []
            depth += sign == "{"
    if line:
        lines.append(_INDENT * depth + _joined(line))
    return "\n".join(lines) + "\n"


def has_custom_options(text: str) -> bool:
    """Whether the schema uses options that Protobuf itself does not define: their names stand in parentheses."""
    signs = _tokens(text)
    return any(
        sign == "(" and before in ("option", "[", ",") for before, sign in itertools.pairwise(signs)
    )


def _joined(tokens: Sequence[str]) -> str:
    written = ""
    for before, sign in zip(("", *tokens), tokens, strict=False):
        is_tight = (
            not before
            or sign in _NO_SPACE_BEFORE
            or before in _NO_SPACE_AFTER
            or (sign == "<" and before == "map")
        )
        written += sign if is_tight else f" {sign}"
    return written


# ---- from a descriptor


def print_file(file: FileDescriptorProto, *, sort: bool = False) -> str:
    """`.proto` text that protoc compiles to this descriptor; with `sort`, everything whose order means nothing in order."""
    lines = [f'syntax = "{file.syntax or "proto2"}";']
    if file.package:
        lines.append(f"package {file.package};")
    lines.append("")
    kinds = dict.fromkeys(file.public_dependency, "public ")
    kinds |= dict.fromkeys(file.weak_dependency, "weak ")
    imports = [f'import {kinds.get(i, "")}"{name}";' for i, name in enumerate(file.dependency)]
    lines += _sorted(imports, sort)
    lines += [f"option {option};" for option in _sorted(_options(file.options), sort)]
    for message in _sorted_named(file.message_type, sort):
        lines += _message(message, file.syntax == "proto3", sort)
    for enum in _sorted_named(file.enum_type, sort):
        lines += _enum(enum, sort)
    lines += _extensions(file.extension, file.syntax == "proto3", sort)
    for service in _sorted_named(file.service, sort):
        lines += _service(service, sort)
    return "\n".join(lines) + "\n"


def _sorted(items: Iterable[str], sort: bool) -> list[str]:  # noqa: FBT001 - handed down
    return sorted(items) if sort else list(items)


def _sorted_named(items: Iterable[Any], sort: bool) -> list[Any]:  # noqa: FBT001 - handed down
    return sorted(items, key=lambda each: each.name) if sort else list(items)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"{_INDENT}{line}" if line else line for line in lines]


def _message(message: DescriptorProto, is_proto3: bool, sort: bool) -> list[str]:  # noqa: FBT001 - handed down
    entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    body = [f"option {option};" for option in _sorted(_options(message.options), sort)]
    fields = sorted(message.field, key=lambda each: each.number) if sort else list(message.field)
    written: set[int] = set()
    for field in fields:
        if field.HasField("oneof_index") and not field.proto3_optional:
            index = field.oneof_index
            if index in written:
                continue
            written.add(index)
            members = [
                each
                for each in fields
                if each.HasField("oneof_index")
                and each.oneof_index == index
                and not each.proto3_optional
            ]
            body.append(f"oneof {message.oneof_decl[index].name} {{")
            body += [
                f"{_INDENT}{_field(member, entries, is_proto3, in_oneof=True)}"
                for member in members
            ]
            body.append("}")
        else:
            body.append(_field(field, entries, is_proto3))
    for nested in _sorted_named(message.nested_type, sort):
        if nested.name not in entries:
            body += _message(nested, is_proto3, sort)
    for enum in _sorted_named(message.enum_type, sort):
        body += _enum(enum, sort)
    for extended in message.extension_range:
        last = extended.end - 1
        body.append(f"extensions {extended.start} to {'max' if last == _HIGHEST_TAG else last};")
    body += _extensions(message.extension, is_proto3, sort)
    for reserved in message.reserved_range:
        last = reserved.end - 1
        span = "" if last == reserved.start else f" to {'max' if last == _HIGHEST_TAG else last}"
        body.append(f"reserved {reserved.start}{span};")
    body += [f'reserved "{name}";' for name in message.reserved_name]
    return [f"message {message.name} {{", *_indented(body), "}"]


def _field(
    field: FieldDescriptorProto,
    entries: dict[str, DescriptorProto],
    is_proto3: bool,  # noqa: FBT001 - handed down
    *,
    in_oneof: bool = False,
) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    label = ""
    if entry is not None and field.label == _REPEATED:
        type_name = f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
    else:
        type_name = _type(field)
        if field.label == _REPEATED:
            label = "repeated "
        elif field.label == _REQUIRED:
            label = "required "
        elif field.proto3_optional or (not is_proto3 and not in_oneof):
            label = "optional "
    options = list(_options(field.options))
    if field.HasField("default_value"):
        quoted = field.type in (9, 12)
        options.insert(
            0,
            f'default = "{field.default_value}"' if quoted else f"default = {field.default_value}",
        )
    if field.json_name and field.json_name != _json_name(field.name):
        options.insert(0, f'json_name = "{field.json_name}"')
    end = f" [{', '.join(options)}]" if options else ""
    return f"{label}{type_name} {field.name} = {field.number}{end};"


def _json_name(name: str) -> str:
    return re.sub(r"_+(.)?", lambda match: (match[1] or "").upper(), name)


def _type(field: FieldDescriptorProto) -> str:
    return _SCALARS.get(field.type) or field.type_name


def _enum(enum: EnumDescriptorProto, sort: bool) -> list[str]:  # noqa: FBT001 - handed down
    body = [f"option {option};" for option in _sorted(_options(enum.options), sort)]
    values = sorted(enum.value, key=lambda each: each.number) if sort else enum.value
    if sort and not any(each.number == 0 for each in enum.value[:1]):
        values = enum.value
    for value in values:
        options = list(_options(value.options))
        end = f" [{', '.join(options)}]" if options else ""
        body.append(f"{value.name} = {value.number}{end};")
    for reserved in enum.reserved_range:
        span = "" if reserved.end == reserved.start else f" to {reserved.end}"
        body.append(f"reserved {reserved.start}{span};")
    body += [f'reserved "{name}";' for name in enum.reserved_name]
    return [f"enum {enum.name} {{", *_indented(body), "}"]


def _extensions(
    extensions: Iterable[FieldDescriptorProto],
    is_proto3: bool,  # noqa: FBT001 - handed down
    sort: bool,  # noqa: FBT001 - handed down
) -> list[str]:
    by_extendee: dict[str, list[str]] = {}
    for field in extensions:
        by_extendee.setdefault(field.extendee, []).append(_field(field, {}, is_proto3))
    lines = []
    for extendee in _sorted(by_extendee, sort):
        lines += [f"extend {extendee} {{", *_indented(by_extendee[extendee]), "}"]
    return lines


def _service(service: ServiceDescriptorProto, sort: bool) -> list[str]:  # noqa: FBT001 - handed down
    body = [f"option {option};" for option in _sorted(_options(service.options), sort)]
    for method in service.method:
        request = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        answer = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        options = [f"option {option};" for option in _options(method.options)]
        end = f" {{ {' '.join(options)} }}" if options else ";"
        body.append(f"rpc {method.name} ({request}) returns ({answer}){end}")
    return [f"service {service.name} {{", *_indented(body), "}"]


def _options(options: Any) -> list[str]:
    """The options that Protobuf itself defines; options of the user's own are not in a descriptor that we can read."""
    written = []
    for field, value in options.ListFields():
        if field.name in ("map_entry", "uninterpreted_option"):
            continue
        values = value if getattr(field, "is_repeated", False) else [value]
        written += [f"{field.name} = {_option_value(field, each)}" for each in values]
    return written


def _option_value(field: Any, value: object) -> str:
    if field.enum_type is not None:
        name: str = field.enum_type.values_by_number[value].name
        return name
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if field.message_type is not None:
        inner = " ".join(
            f"{each.name}: {_option_value(each, found)}"
            for each, found in value.ListFields()  # type: ignore[attr-defined]
        )
        return f"{{ {inner} }}"
    return str(value)
