"""Normalises `.proto` files: everything whose order means nothing in order, every type by its full name. Pure.

The result is what Confluent's registry stores for a schema that is registered with `normalize=true`, with one exception:
numbers of options are not rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.schemas.formats.protobuf.proto_file import (
    Enum,
    Extend,
    Extensions,
    Field,
    Group,
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
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )

V = TypeVar("V", int | Range, int | Range | str)

_SCALARS: Final = frozenset(
    {
        "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
        "sfixed64", "bool", "string", "bytes",
    }
)  # fmt: skip
_MAP: Final = re.compile(r"map<(\w+), (.+)>")
_REPEATED: Final = 3


def normalized_proto(file: ProtoFile, files: Mapping[str, FileDescriptorProto]) -> ProtoFile:
    """The file in order; `files` are its descriptor and those of all its imports."""
    return _Normalization(file.package or "", _Names(files)).file(file)


class _Names:
    """The types and extensions that a file may name, by their full names."""

    def __init__(self, files: Mapping[str, FileDescriptorProto]) -> None:
        self.messages: dict[str, DescriptorProto] = {}
        self.types: set[str] = set()
        self.extensions: dict[str, FieldDescriptorProto] = {}
        for file in files.values():
            prefix = f"{file.package}." if file.package else ""
            self.types |= {prefix + each.name for each in file.enum_type}
            self.extensions |= {prefix + each.name: each for each in file.extension}
            for message in file.message_type:
                self._add(prefix, message)

    def _add(self, prefix: str, message: DescriptorProto) -> None:
        name = prefix + message.name
        self.messages[name] = message
        self.types.add(name)
        self.types |= {f"{name}.{each.name}" for each in message.enum_type}
        self.extensions |= {f"{name}.{each.name}": each for each in message.extension}
        for nested in message.nested_type:
            self._add(f"{name}.", nested)

    def message_of(self, field: FieldDescriptorProto | None) -> DescriptorProto | None:
        """The message that a field holds."""
        return None if field is None else self.messages.get(field.type_name.lstrip("."))


def _resolved(name: str, scope: str, known: Iterable[str]) -> str | None:
    """The full name that a name means in a scope: the innermost one."""
    if name.startswith("."):
        return name[1:]
    names = known if isinstance(known, set | dict) else set(known)
    parts = scope.split(".") if scope else []
    for length in range(len(parts), -1, -1):
        candidate = ".".join([*parts[:length], name])
        if candidate in names:
            return candidate
    return None


class _Normalization:
    """Walks through a file; `scope` is the full name of what it is in."""

    def __init__(self, scope: str, names: _Names) -> None:
        self._scope = scope
        self._names = names

    def _inside(self, name: str) -> _Normalization:
        return _Normalization(f"{self._scope}.{name}" if self._scope else name, self._names)

    def _type(self, name: str) -> str:
        pair = _MAP.fullmatch(name)
        if pair is not None:
            return f"map<{pair[1]}, {self._type(pair[2])}>"
        if name in _SCALARS:
            return name
        resolved = _resolved(name, self._scope, self._names.types)
        return name if resolved is None else f".{resolved}"

    # ---- parts of a file

    def file(self, file: ProtoFile) -> ProtoFile:
        return ProtoFile(
            syntax=None if file.syntax == "proto2" else file.syntax,
            edition=file.edition,
            package=file.package,
            imports=sorted(set(file.imports)),
            public_imports=sorted(set(file.public_imports)),
            weak_imports=sorted(set(file.weak_imports)),
            options=self._options(file.options),
            messages=[self._inside(each.name)._message(each) for each in file.messages],
            enums=[self._inside(each.name)._enum(each) for each in file.enums],
            extends=self._extends(file.extends),
            services=[self._service(each) for each in file.services],
        )

    def _message(self, message: Message) -> Message:
        oneofs = [self._oneof(each) for each in message.oneofs if each.fields]
        return Message(
            message.name,
            fields=self._fields(message.fields),
            oneofs=sorted(oneofs, key=lambda each: each.fields[0].tag),
            groups=self._groups(message.groups),
            messages=[self._inside(each.name)._message(each) for each in message.messages],
            enums=[self._inside(each.name)._enum(each) for each in message.enums],
            extends=self._extends(message.extends),
            extensions=sorted(
                (
                    Extensions([_shortest(value)], self._options(each.options))
                    for each in message.extensions
                    for value in each.values
                ),
                key=lambda each: _first(each.values[0]),
            ),
            reserved=_reserved(message.reserved),
            options=self._options(message.options),
        )

    def _oneof(self, oneof: OneOf) -> OneOf:
        return OneOf(
            oneof.name,
            self._fields(oneof.fields),
            self._groups(oneof.groups),
            self._options(oneof.options),
        )

    def _groups(self, groups: list[Group]) -> list[Group]:
        found = [replace(each, fields=self._fields(each.fields)) for each in groups]
        return sorted(found, key=lambda each: each.tag)

    def _fields(self, fields: list[Field]) -> list[Field]:
        return sorted(map(self._field, fields), key=lambda each: each.tag)

    def _field(self, field: Field) -> Field:
        type_name = self._type(field.type)
        return Field(field.label, type_name, field.name, field.tag, self._options(field.options))

    def _enum(self, enum: Enum) -> Enum:
        constants = [replace(each, options=self._options(each.options)) for each in enum.constants]
        return Enum(
            enum.name,
            sorted(constants, key=lambda each: (each.tag, each.name)),
            self._options(enum.options),
            _reserved(enum.reserved),
        )

    def _extends(self, extends: list[Extend]) -> list[Extend]:
        """One block for each message that is extended."""
        found: dict[str, list[Field]] = {}
        for each in extends:
            found.setdefault(self._type(each.name), []).extend(map(self._field, each.fields))
        return [Extend(name, fields) for name, fields in found.items()]

    def _service(self, service: Service) -> Service:
        return Service(
            service.name, [self._rpc(each) for each in service.rpcs], self._options(service.options)
        )

    def _rpc(self, rpc: Rpc) -> Rpc:
        return replace(
            rpc,
            request=self._type(rpc.request),
            answer=self._type(rpc.answer),
            options=self._options(rpc.options),
        )

    # ---- options

    def _options(self, options: list[Option]) -> list[Option]:
        by_name: dict[str, list[Option]] = {}
        for each in sorted(map(self._named, options), key=lambda each: each.name):
            by_name.setdefault(each.name, []).append(each)
        found: list[Option] = []
        for name, same in by_name.items():
            extension = self._names.extensions.get(name)
            if same[0].is_extension and extension is not None and extension.label != _REPEATED:
                merged = same[0].value
                for other in same[1:]:
                    merged = self._merged(extension, merged, other.value)
                same = [replace(same[0], value=merged)]
            found += [replace(each, value=self._value(each.value)) for each in same]
        return found

    def _named(self, option: Option) -> Option:
        """The option by its full name, with one value for all of it."""
        if not option.is_extension:
            return option
        name = _resolved(option.name, self._scope, self._names.extensions)
        if name is None:
            return option
        value = option.value
        for part in reversed(option.path):
            value = {part: value}
        return Option(name, value, is_extension=True)

    def _merged(self, field: FieldDescriptorProto | None, before: Value, after: Value) -> Value:
        """What two settings of one field say together."""
        message = self._names.message_of(field)
        if isinstance(before, dict) and isinstance(after, dict) and message is not None:
            known = {each.name: each for each in message.field}
            merged = dict(before)
            for name, value in after.items():
                inner = known.get(name)
                if name not in merged:
                    merged[name] = value
                elif inner is not None and inner.label != _REPEATED:
                    merged[name] = self._merged(inner, merged[name], value)
                else:
                    merged[name] = _together(merged[name], value)
            return merged
        return after

    def _value(self, value: Value) -> Value:
        match value:
            case Word(text=text):
                return Word(_number(text))
            case list():
                return [self._value(each) for each in value]
            case dict():
                found = {
                    self._key(name): _single(self._value(each))
                    for name, each in value.items()
                    if each != []
                }
                return dict(sorted(found.items()))
            case _:
                return value

    def _key(self, name: str) -> str:
        if not name.startswith("["):
            return name
        resolved = _resolved(name[1:-1], self._scope, self._names.extensions)
        return name if resolved is None else f"[{resolved}]"


def _together(before: Value, after: Value) -> Value:
    values: list[Value] = []
    for each in (before, after):
        for value in each if isinstance(each, list) else [each]:
            if value not in values:
                values.append(value)
    return values


def _single(value: Value) -> Value:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _reserved(reserved: list[Reserved]) -> list[Reserved]:
    values = [_shortest(value) for each in reserved for value in each.values]
    numbers = sorted((each for each in values if not isinstance(each, str)), key=_first)
    names = sorted(each for each in values if isinstance(each, str))
    return [Reserved([each]) for each in (*numbers, *names)]


def _shortest(value: V) -> V | int:
    return value.start if isinstance(value, Range) and value.start == value.end else value


def _first(value: int | Range) -> int:
    return value.start if isinstance(value, Range) else value


def _number(text: str) -> str:
    """A number without exponent, base or needless digits; other words as they are."""
    if not re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|\d[\d.]*([eE][+-]?\d+)?[fFdDlL]?)", text):
        return text
    digits = text.lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    if digits[:2].lower() == "0x":
        return str(sign * int(digits, 16))
    if re.fullmatch(r"0[0-7]+", digits):
        return str(sign * int(digits, 8))
    try:
        value = sign * Decimal(digits.rstrip("fFdDlL"))
    except InvalidOperation:
        return text
    if abs(value.adjusted()) > 30:
        return text
    plain = f"{value:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
