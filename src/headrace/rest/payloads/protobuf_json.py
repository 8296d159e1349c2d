"""Protobuf's JSON mapping, to and from its binary encoding, for schemas that are known as descriptors. Pure.

Java's printer is the model of what is written: default values are printed, names are in lowerCamelCase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pool, json_format, message, message_factory

from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from headrace.schemas.wire_format import (
    FIRST_MESSAGE,
    Framed,
    NotFramed,
    encode_message_indexes,
    parse_protobuf,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

Json = Any


class ProtobufCodec:
    """The messages of one file. New records are written with one of them: the first, unless another is named."""

    is_blocking = False

    def __init__(self, files: Iterable[FileDescriptorProto], *, message: str = "") -> None:
        """`files`: the schema's file comes last, behind those that it imports. Raises UnusableSchema.

        `message` is the full name of the message to write.
        """
        self._pool = descriptor_pool.DescriptorPool()
        try:
            for each in files:
                self._pool.Add(each)
            self._file = self._pool.FindFileByName(each.name)
        except (TypeError, KeyError, ValueError) as wrong:
            raise UnusableSchema(str(wrong)) from wrong
        if not self._file.message_types_by_name:
            raise UnusableSchema("the schema defines no message")
        self._by_index = list(self._file.message_types_by_name.values())
        self._indexes = FIRST_MESSAGE if not message else self._indexes_of(message)
        self._written = self._message(self._indexes)

    @property
    def record_name(self) -> str | None:
        """The full name of the message that is written."""
        return self._written.full_name

    def encode(self, data: bytes) -> bytes:
        """The message indexes and the message. Raises NotOfSchema."""
        if data[:1] != b"{":
            raise NotOfSchema("the value does not fit its Protobuf schema: expected an object")
        written = message_factory.GetMessageClass(self._written)()
        try:
            json_format.Parse(data, written, descriptor_pool=self._pool)
            return encode_message_indexes(self._indexes) + written.SerializeToString()
        except (
            json_format.ParseError,
            message.Error,
            ValueError,
            TypeError,
            RecursionError,
        ) as wrong:
            raise NotOfSchema(f"the value does not fit its Protobuf schema: {wrong}") from wrong

    def decode(self, framed: Framed) -> Json:
        """A message in Protobuf's JSON mapping. Raises NotOfSchema."""
        try:
            indexes, payload = parse_protobuf(framed)
            read = message_factory.GetMessageClass(self._message(indexes)).FromString(payload)
            return json_format.MessageToDict(
                read, always_print_fields_with_no_presence=True, descriptor_pool=self._pool
            )
        except (NotFramed, json_format.Error, message.Error, ValueError, RecursionError) as wrong:
            raise NotOfSchema(f"the bytes do not fit their Protobuf schema: {wrong}") from wrong

    def _indexes_of(self, full_name: str) -> tuple[int, ...]:
        waiting: list[tuple[tuple[int, ...], Descriptor]] = [
            ((number,), each) for number, each in enumerate(self._by_index)
        ]
        while waiting:
            indexes, found = waiting.pop(0)
            if found.full_name == full_name:
                return indexes
            waiting += [
                ((*indexes, number), each) for number, each in enumerate(found.nested_types)
            ]
        raise UnusableSchema(f"the schema has no message {full_name}")

    def _message(self, indexes: tuple[int, ...]) -> Descriptor:
        """The message type that indexes lead to: a message of the file, then nested ones. Raises NotOfSchema."""
        choices: Sequence[Descriptor] = self._by_index
        found = None
        for index in indexes:
            if index >= len(choices):
                raise NotOfSchema(f"the schema has no message with the indexes {list(indexes)}")
            found = choices[index]
            choices = found.nested_types
        assert found is not None
        return found
