"""`.proto` files without what users add to Protobuf: their own options, and extensions of messages. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.schemas.formats.protobuf.proto_file import (
    Enum,
    Field,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Service,
)

_CONFLUENT: Final = "confluent."


def without_extensions(file: ProtoFile) -> ProtoFile:
    """The file without options of users, without extensions, and without tags for extensions."""
    plain = without_custom_options(file)
    return replace(plain, extends=[], messages=[_unextended(each) for each in plain.messages])


def _unextended(message: Message) -> Message:
    messages = [_unextended(each) for each in message.messages]
    return replace(message, extends=[], extensions=[], messages=messages)


def without_custom_options(file: ProtoFile) -> ProtoFile:
    """The file with no options but those that Protobuf or Confluent define."""
    return replace(
        file,
        options=_known(file.options),
        messages=[_message(each) for each in file.messages],
        enums=[_enum(each) for each in file.enums],
        extends=[replace(each, fields=_fields(each.fields)) for each in file.extends],
        services=[_service(each) for each in file.services],
    )


def _known(options: list[Option]) -> list[Option]:
    return [each for each in options if not each.is_extension or each.name.startswith(_CONFLUENT)]


def _fields(fields: list[Field]) -> list[Field]:
    return [replace(each, options=_known(each.options)) for each in fields]


def _message(message: Message) -> Message:
    return replace(
        message,
        options=_known(message.options),
        fields=_fields(message.fields),
        oneofs=[_oneof(each) for each in message.oneofs],
        groups=[replace(each, fields=_fields(each.fields)) for each in message.groups],
        messages=[_message(each) for each in message.messages],
        enums=[_enum(each) for each in message.enums],
        extends=[replace(each, fields=_fields(each.fields)) for each in message.extends],
    )


def _oneof(oneof: OneOf) -> OneOf:
    groups = [replace(each, fields=_fields(each.fields)) for each in oneof.groups]
    return OneOf(oneof.name, _fields(oneof.fields), groups, _known(oneof.options))


def _enum(enum: Enum) -> Enum:
    constants = [replace(each, options=_known(each.options)) for each in enum.constants]
    return replace(enum, options=_known(enum.options), constants=constants)


def _service(service: Service) -> Service:
    rpcs = [replace(each, options=_known(each.options)) for each in service.rpcs]
    return Service(service.name, rpcs, _known(service.options))
