"""Prints `.proto` files in the layout of Confluent's registry, which identifies Protobuf schemas by this text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from headrace.schemas.formats.protobuf.proto_file import (
    MAX_TAG,
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

_INDENT: Final = "  "
_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
}

Lines = list[str]


def print_proto(file: ProtoFile) -> str:
    """The text of a file."""
    head: Lines = []
    if file.syntax is not None:
        head.append(f'syntax = "{file.syntax}";')
    if file.edition is not None:
        head.append(f'edition = "{file.edition}";')
    if file.package is not None:
        head.append(f"package {file.package};")
    imports = [
        *(f'import "{name}";' for name in file.imports),
        *(f'import weak "{name}";' for name in file.weak_imports),
        *(f'import public "{name}";' for name in file.public_imports),
    ]
    types = [line for each in file.messages for line in _message(each)]
    types += [line for each in file.enums for line in _enum(each)]
    parts = [
        imports,
        [line for each in file.options for line in _option_statement(each)],
        types,
        [line for each in file.extends for line in _extend(each)],
        [line for each in file.services for line in _service(each)],
    ]
    for part in parts:
        if part:
            head += ["", *part]
    return "".join(f"{line}\n" for line in head)


def _indented(lines: Iterable[str]) -> Lines:
    # A blank line is indented, too: texts must be equal to the letter.
    return [_INDENT + line for line in lines]


def _block(head: str, parts: Sequence[Lines]) -> Lines:
    """A block whose parts have a blank line between them."""
    filled = [part for part in parts if part]
    if not filled:
        return [f"{head} {{}}"]
    body = _indented(filled[0])
    for part in filled[1:]:
        body += ["", *_indented(part)]
    return [f"{head} {{", *body, "}"]


def _message(message: Message) -> Lines:
    nested = [line for each in message.messages for line in _message(each)]
    nested += [line for each in message.enums for line in _enum(each)]
    return _block(
        f"message {message.name}",
        [
            [_reserved(each) for each in message.reserved],
            [line for each in message.options for line in _option_statement(each)],
            [line for each in message.fields for line in _field(each)],
            [line for each in message.oneofs for line in _oneof(each)],
            [line for each in message.groups for line in _group(each)],
            [line for each in message.extensions for line in _extensions(each)],
            [line for each in message.extends for line in _extend(each)],
            nested,
        ],
    )


def _oneof(oneof: OneOf) -> Lines:
    return _block(
        f"oneof {oneof.name}",
        [
            [line for each in oneof.options for line in _option_statement(each)],
            [line for each in oneof.fields for line in _field(each)],
            [line for each in oneof.groups for line in _group(each)],
        ],
    )


def _group(group: Group) -> Lines:
    label = f"{group.label} " if group.label else ""
    head = f"{label}group {group.name} = {group.tag}"
    return _block(head, [[line for each in group.fields for line in _field(each)]])


def _enum(enum: Enum) -> Lines:
    body = [_reserved(each) for each in enum.reserved]
    body += [line for each in enum.options for line in _option_statement(each)]
    for constant in enum.constants:
        body += _with_options(f"{constant.name} = {constant.tag}", constant.options)
    return _block(f"enum {enum.name}", [body])


def _extend(extend: Extend) -> Lines:
    return _block(
        f"extend {extend.name}", [[line for each in extend.fields for line in _field(each)]]
    )


def _service(service: Service) -> Lines:
    return _block(
        f"service {service.name}",
        [
            [line for each in service.options for line in _option_statement(each)],
            [line for each in service.rpcs for line in _rpc(each)],
        ],
    )


def _rpc(rpc: Rpc) -> Lines:
    request = f"{'stream ' if rpc.streams_request else ''}{rpc.request}"
    answer = f"{'stream ' if rpc.streams_answer else ''}{rpc.answer}"
    head = f"rpc {rpc.name} ({request}) returns ({answer})"
    if not rpc.options:
        return [f"{head};"]
    options = [line for each in rpc.options for line in _option_statement(each)]
    return [f"{head} {{", *_indented(options), "};"]


def _field(field: Field) -> Lines:
    label = f"{field.label} " if field.label else ""
    head = f"{label}{field.type} {field.name} = {field.tag}"
    return _with_options(head, field.options)


def _reserved(reserved: Reserved) -> str:
    values = (f'"{each}"' if isinstance(each, str) else _range(each) for each in reserved.values)
    return f"reserved {', '.join(values)};"


def _extensions(extensions: Extensions) -> Lines:
    ranges = ", ".join(map(_range, extensions.values))
    return _with_options(f"extensions {ranges}", extensions.options)


def _range(value: int | Range) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{value.start} to {'max' if value.end >= MAX_TAG else value.end}"


# ---- options


def _option_statement(option: Option) -> Lines:
    return _ended(
        [f"option {line}" if not index else line for index, line in enumerate(_option(option))], ";"
    )


def _with_options(head: str, options: Sequence[Option]) -> Lines:
    if not options:
        return [f"{head};"]
    if len(options) == 1:
        first, *others = _ended(_option(options[0]), "];")
        return [f"{head} [{first}", *others]
    body: Lines = []
    for index, option in enumerate(options):
        body += _ended(_option(option), "," if index < len(options) - 1 else "")
    return [f"{head} [", *_indented(body), "];"]


def _option(option: Option) -> Lines:
    name = f"({option.name})" if option.is_extension else option.name
    name = ".".join((name, *option.path))
    value = option.value
    if isinstance(value, list):
        # A list that is a whole option is written as options are.
        first, *others = _bracketed(value)
    else:
        first, *others = _value(value)
    return [f"{name} = {first}", *others]


def _bracketed(values: Sequence[Value]) -> Lines:
    if len(values) == 1:
        first, *others = _ended(_value(values[0]), "]")
        return [f"[{first}", *others]
    return _list(values)


def _value(value: Value) -> Lines:
    match value:
        case str():
            return [f'"{_escaped(value)}"']
        case Word(text=text):
            return [text]
        case list():
            return _list(value)
        case dict():
            body: Lines = []
            for index, (name, each) in enumerate(value.items()):
                first, *others = _ended(_value(each), "," if index < len(value) - 1 else "")
                body += [f"{name}: {first}", *others]
            return ["{", *_indented(body), "}"]


def _list(values: Sequence[Value]) -> Lines:
    body: Lines = []
    for index, each in enumerate(values):
        body += _ended(_value(each), "," if index < len(values) - 1 else "")
    return ["[", *_indented(body), "]"]


def _ended(lines: Lines, end: str) -> Lines:
    return [*lines[:-1], lines[-1] + end]


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(each, each) for each in text)
