"""Parses the text of a `.proto` file that protoc has accepted. Pure.

protoc says what is wrong with a text, and its descriptors say what the text means; but they do not say how its author
wrote it, and Confluent's canonical text does. So this parser trusts its input and keeps every name as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headrace.schemas.formats.protobuf.proto_file import (
    MAX_TAG,
    Constant,
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
from headrace.schemas.formats.schema_format import MAX_DEPTH, InvalidSchema

_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""
    r"""|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>[A-Za-z0-9_.+\-]+)"""
    r"""|(?P<sign>[{}()\[\]<>;,=:/])""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([xX][0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LABELS: Final = ("optional", "required", "repeated")
_QUOTES: Final = ('"', "'")
_LAST_OPTIONS: Final = {"default": 1, "json_name": 2}


def parse_proto(text: str) -> ProtoFile:
    """The file. Raises InvalidSchema where this is no `.proto` text."""
    return _Parser(_tokens(text)).file()


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


def _unquoted(token: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xX" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        return _ESCAPED.get(code, code)

    return _ESCAPE.sub(replaced, token[1:-1])


class _Parser:
    """Reads tokens from the first to the last."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    # ---- tokens

    def _peek(self, offset: int = 0) -> str:
        index = self._next + offset
        return self._tokens[index] if index < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        if not token:
            raise InvalidSchema("unexpected end of the schema")
        self._next += 1
        return token

    def _expect(self, sign: str) -> None:
        token = self._take()
        if token != sign:
            raise InvalidSchema(f"expected {sign!r} but was {token!r}")

    def _accept(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._next += 1
        return True

    def _string(self) -> str:
        if not self._peek().startswith(_QUOTES):
            raise InvalidSchema(f"expected a string but was {self._peek()!r}")
        written = ""
        while self._peek().startswith(_QUOTES):
            written += _unquoted(self._take())
        return written

    def _number(self) -> int:
        written = self._take()
        if written == "max":
            return MAX_TAG
        sign = -1 if written.startswith("-") else 1
        digits = written.lstrip("+-")
        try:
            if digits[:2].lower() == "0x":
                return sign * int(digits, 16)
            return sign * int(digits, 8 if digits.startswith("0") and len(digits) > 1 else 10)
        except ValueError:
            raise InvalidSchema(f"expected a number but was {written!r}") from None

    def _block(self, statement: Callable[[str], None]) -> None:
        """The statements between braces."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidSchema(f"the schema is nested more than {MAX_DEPTH} levels deep")
        self._expect("{")
        while not self._accept("}"):
            if not self._accept(";"):
                statement(self._peek())
        self._depth -= 1

    # ---- statements

    def file(self) -> ProtoFile:
        file = ProtoFile()
        while self._peek():
            if not self._accept(";"):
                self._file_statement(file, self._take())
        return file

    def _file_statement(self, file: ProtoFile, word: str) -> None:
        match word:
            case "syntax" | "edition":
                self._expect("=")
                setattr(file, word, self._string())
                self._expect(";")
            case "package":
                file.package = self._take()
                self._expect(";")
            case "import":
                kinds = {"public": file.public_imports, "weak": file.weak_imports}
                imports = file.imports
                if self._peek() in kinds:
                    imports = kinds[self._take()]
                imports.append(self._string())
                self._expect(";")
            case "option":
                file.options.append(self._option_statement())
            case "message":
                file.messages.append(self._message())
            case "enum":
                file.enums.append(self._enum())
            case "extend":
                file.extends.append(self._extend())
            case "service":
                file.services.append(self._service())
            case _:
                raise InvalidSchema(f"unexpected {word!r}")

    def _message(self) -> Message:
        message = Message(self._take())
        self._block(lambda word: self._message_statement(message, word))
        return message

    def _message_statement(self, message: Message, word: str) -> None:
        # Every keyword may also be the type of a field: then a name and an equals sign follow.
        is_field = self._peek(2) == "=" and word != "option"
        match "" if is_field else word:
            case "message":
                self._take()
                message.messages.append(self._message())
            case "enum" if self._peek(2) == "{":
                self._take()
                message.enums.append(self._enum())
            case "extend" if self._peek(2) == "{":
                self._take()
                message.extends.append(self._extend())
            case "oneof" if self._peek(2) == "{":
                self._take()
                message.oneofs.append(self._oneof())
            case "option":
                self._take()
                message.options.append(self._option_statement())
            case "reserved":
                self._take()
                message.reserved.append(Reserved(self._reserved_values()))
            case "extensions":
                self._take()
                message.extensions.append(self._extensions())
            case _:
                self._field_or_group(message.fields, message.groups)

    def _field_or_group(self, fields: list[Field], groups: list[Group]) -> None:
        label = None
        if self._peek() in _LABELS and self._peek(1) != "=" and self._peek(2) != "=":
            label = self._take()
        if self._peek() == "group" and self._peek(2) == "=":
            self._take()
            groups.append(self._group(label))
            return
        fields.append(self._field(label))

    def _field(self, label: str | None) -> Field:
        type_name = self._take()
        if type_name == "map" and self._accept("<"):
            key = self._take()
            self._expect(",")
            type_name = f"map<{key}, {self._take()}>"
            self._expect(">")
        name = self._take()
        self._expect("=")
        field = Field(label, type_name, name, self._number(), self._bracketed_options())
        self._expect(";")
        # Two options have meanings of their own: Confluent's registry writes them behind the others.
        field.options.sort(key=lambda each: _LAST_OPTIONS.get(each.name, 0))
        return field

    def _group(self, label: str | None) -> Group:
        name = self._take()
        self._expect("=")
        group = Group(label, name, self._number())
        self._bracketed_options()
        self._block(lambda _: self._field_or_group(group.fields, []))
        return group

    def _oneof(self) -> OneOf:
        oneof = OneOf(self._take())

        def statement(word: str) -> None:
            if word == "option":
                self._take()
                oneof.options.append(self._option_statement())
            else:
                self._field_or_group(oneof.fields, oneof.groups)

        self._block(statement)
        return oneof

    def _enum(self) -> Enum:
        enum = Enum(self._take())

        def statement(word: str) -> None:
            if word == "option" and self._peek(1) != "=":
                self._take()
                enum.options.append(self._option_statement())
            elif word == "reserved" and self._peek(1) != "=":
                self._take()
                enum.reserved.append(Reserved(self._reserved_values()))
            else:
                name = self._take()
                self._expect("=")
                constant = Constant(name, self._number(), self._bracketed_options())
                self._expect(";")
                enum.constants.append(constant)

        self._block(statement)
        return enum

    def _extend(self) -> Extend:
        extend = Extend(self._take())
        self._block(lambda _: self._field_or_group(extend.fields, []))
        return extend

    def _service(self) -> Service:
        service = Service(self._take())

        def statement(word: str) -> None:
            self._take()
            if word == "option":
                service.options.append(self._option_statement())
            elif word == "rpc":
                service.rpcs.append(self._rpc())
            else:
                raise InvalidSchema(f"unexpected {word!r} in a service")

        self._block(statement)
        return service

    def _rpc(self) -> Rpc:
        name = self._take()
        streams_request, request = self._rpc_type()
        self._expect("returns")
        streams_answer, answer = self._rpc_type()
        rpc = Rpc(name, request, answer, streams_request, streams_answer)

        def statement(_: str) -> None:
            self._expect("option")
            rpc.options.append(self._option_statement())

        if self._peek() == "{":
            self._block(statement)
        else:
            self._expect(";")
        return rpc

    def _rpc_type(self) -> tuple[bool, str]:
        self._expect("(")
        streams = self._peek() == "stream" and self._peek(1) != ")"
        if streams:
            self._take()
        name = self._take()
        self._expect(")")
        return streams, name

    # ---- ranges

    def _reserved_values(self) -> list[int | Range | str]:
        values: list[int | Range | str] = []
        while True:
            if self._peek().startswith(_QUOTES):
                values.append(self._string())
            elif self._peek()[:1].isalpha() or self._peek().startswith("_"):
                values.append(self._take())  # a name, as editions write it
            else:
                values.append(self._range())
            if not self._accept(","):
                break
        self._expect(";")
        return values

    def _range(self) -> int | Range:
        start = self._number()
        if not self._accept("to"):
            return start
        return Range(start, self._number())

    def _extensions(self) -> Extensions:
        values = [self._range()]
        while self._accept(","):
            values.append(self._range())
        options = self._bracketed_options()
        self._expect(";")
        return Extensions(values, options)

    # ---- options

    def _option_statement(self) -> Option:
        option = self._option()
        self._expect(";")
        return option

    def _bracketed_options(self) -> list[Option]:
        options: list[Option] = []
        if self._accept("["):
            while not self._accept("]"):
                options.append(self._option())
                self._accept(",")
        return options

    def _option(self) -> Option:
        is_extension = self._accept("(")
        name = self._take()
        path: list[str] = []
        if is_extension:
            self._expect(")")
        while not self._accept("="):
            part = self._take()
            if part == "(":
                path.append(f"({self._take()})")
                self._expect(")")
            else:
                path += [each for each in part.split(".") if each]
        return Option(name, self._value(), is_extension, path)

    def _value(self) -> Value:
        sign = self._peek()
        if sign.startswith(_QUOTES):
            return self._string()
        if sign in ("{", "<"):
            return self._text_message("}" if sign == "{" else ">")
        if sign == "[":
            self._take()
            return self._list()
        word = self._take()
        if word in ("-", "+"):
            word += self._take()
        return Word(word)

    def _list(self) -> list[Value]:
        values: list[Value] = []
        while not self._accept("]"):
            values.append(self._value())
            self._accept(",")
        return values

    def _text_message(self, end: str) -> dict[str, Value]:
        """A message in text format; a name that stands twice has a list of values."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidSchema(f"the schema is nested more than {MAX_DEPTH} levels deep")
        self._take()
        found: dict[str, Value] = {}
        while not self._accept(end):
            name = self._take()
            if name == "[":
                name = "["
                while not self._accept("]"):
                    name += self._take()
                name += "]"
            self._accept(":")
            value = self._value()
            found[name] = [*_listed(found[name]), *_listed(value)] if name in found else value
            if not self._accept(","):
                self._accept(";")
        self._depth -= 1
        return found


def _listed(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]
