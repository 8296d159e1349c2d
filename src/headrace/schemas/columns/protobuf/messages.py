"""Protobuf schemas as message types of the protobuf library, out of a text that holds all files of a schema. Pure.

The text is a base64 FileDescriptorSet: what protoc made of the schema and of everything that it imports. So protoc is needed where
a schema is pinned, and not where its values are read and written.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from headrace.schemas.columns.codec import PinnedSchema
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.registry_client import PROTOBUF, NamedSchema, Schema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FileDescriptor
    from google.protobuf.message import Message

_KEPT: Final = 256


def pin_protobuf(schema: Schema, dependencies: Sequence[NamedSchema], message: str) -> PinnedSchema:
    """Compile a schema. `message` is a message's name, with or without the package; the first one by default."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from headrace.schemas.formats.protobuf.language import ProtobufFormat, ProtobufSchema

    references = {each.name: each.schema.text for each in dependencies}
    parsed = cast(ProtobufSchema, ProtobufFormat().parse(schema.text, references, is_new=False))
    files = FileDescriptorSet(file=list(parsed.files.values()))
    text = base64.b64encode(files.SerializeToString(deterministic=True)).decode()
    return PinnedSchema(PROTOBUF, text, _full_name(text, message))


def _full_name(text: str, wanted: str) -> str:
    names = [each.full_name for each in _all_messages(text)]
    if not names:
        raise InvalidSchema("the schema has no message")
    if not wanted:
        return names[0]
    found = [name for name in names if name == wanted or name.endswith(f".{wanted}")]
    if wanted in found:
        return wanted
    if len(found) != 1:
        raise InvalidSchema(f"the schema has no message '{wanted}': it has {', '.join(names)}")
    return found[0]


@lru_cache(_KEPT)
def _main_file(text: str) -> FileDescriptor:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    files = FileDescriptorSet.FromString(base64.b64decode(text)).file
    pool = DescriptorPool()
    for each in files:
        pool.AddSerializedFile(each.SerializeToString())
    return pool.FindFileByName(files[-1].name)


def _top_messages(text: str) -> list[Descriptor]:
    """The messages of the schema's own file, in the order in which they stand in it."""
    file = _main_file(text)
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    written = FileDescriptorProto()
    file.CopyToProto(written)
    return [file.message_types_by_name[each.name] for each in written.message_type]


def _all_messages(text: str) -> Iterator[Descriptor]:
    waiting = _top_messages(text)
    while waiting:
        message = waiting.pop(0)
        yield message
        waiting += [each for each in message.nested_types if not each.GetOptions().map_entry]


def message_type(schema: PinnedSchema) -> Descriptor:
    """The chosen message."""
    found = next(
        (each for each in _all_messages(schema.text) if each.full_name == schema.message), None
    )
    assert found is not None, f"{schema.message} was found when the schema was pinned"
    return found


def message_class(message: Descriptor) -> type[Message]:
    """The class that reads and writes a message."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(message)


def has_message(schema: PinnedSchema, full_name: str) -> bool:
    """Whether the schema's own file has a message of this name."""
    return any(each.full_name == full_name for each in _all_messages(schema.text))


def message_at(schema: PinnedSchema, indexes: Sequence[int]) -> str:
    """The full name of the message that message indexes lead to. Raises LookupError where they lead nowhere."""
    messages: list[Any] = _top_messages(schema.text)
    name = ""
    for index in indexes:
        found = messages[index]
        name, messages = found.full_name, list(found.nested_types)
    return name


def indexes_of(schema: PinnedSchema) -> tuple[int, ...]:
    """The message indexes of the chosen message."""

    def search(messages: Sequence[Any], path: tuple[int, ...]) -> tuple[int, ...] | None:
        for number, each in enumerate(messages):
            here = (*path, number)
            found = here if each.full_name == schema.message else search(each.nested_types, here)
            if found is not None:
                return found
        return None

    found = search(_top_messages(schema.text), ())
    assert found is not None
    return found
