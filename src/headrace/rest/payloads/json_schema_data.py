"""JSON documents that must be valid by a JSON Schema. Pure.

`Validators` compiles schemas and validates. How long that takes is in the hands of whoever wrote the schema: a few lines
that refer to each other can stand for billions of comparisons. So the proxy leaves it to `json_schema_process`.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, Protocol

import jsonschema_rs
import msgspec

from headrace.rest import errors
from headrace.rest.payloads import plain
from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from headrace.schemas.wire_format import Framed

Json = Any

_COMPILED: Final = 200
_SHOWN_CHARACTERS: Final = 1000


class SchemaDocuments(msgspec.Struct, frozen=True):
    """A schema with the documents that it refers to, by name. Schemas with the same key are equal."""

    key: bytes
    text: str
    references: dict[str, str]

    @classmethod
    def of(cls, text: str, references: Mapping[str, str]) -> SchemaDocuments:
        """With the key that belongs to the texts."""
        names = dict(references)
        key = hashlib.sha256(msgspec.msgpack.encode((text, names))).digest()
        return cls(key, text, names)


class Validation(Protocol):
    """Compiles schemas and validates documents."""

    def compile(self, schema: SchemaDocuments) -> None:
        """Raises UnusableSchema."""
        ...

    def validate(self, schema: SchemaDocuments, data: bytes) -> None:
        """Raises NotOfSchema where a JSON text is not valid, UnusableSchema where the schema is none."""
        ...


class Validators:
    """Validation in this process, however long it takes. Keeps the validators that were used last."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[bytes, jsonschema_rs.Validator] = OrderedDict()

    def has(self, key: bytes) -> bool:
        """Whether the schema with this key is compiled."""
        return key in self._compiled

    def compile(self, schema: SchemaDocuments) -> None:
        """Raises UnusableSchema."""
        if schema.key in self._compiled:
            return
        try:
            document = json.loads(schema.text)
            others = {name: json.loads(other) for name, other in schema.references.items()}
            found = jsonschema_rs.validator_for(document, retriever=lambda uri: _find(others, uri))
        except Exception as wrong:  # a text of others: the library may raise anything
            raise UnusableSchema(str(wrong)[:_SHOWN_CHARACTERS]) from wrong
        self._compiled[schema.key] = found
        if len(self._compiled) > _COMPILED:
            self._compiled.popitem(last=False)

    def validate(self, schema: SchemaDocuments, data: bytes) -> None:
        """Raises NotOfSchema, UnusableSchema."""
        self.compile(schema)
        self.validate_with(schema.key, data)

    def validate_with(self, key: bytes, data: bytes) -> None:
        """Validate with a schema that is compiled. Raises NotOfSchema."""
        self._compiled.move_to_end(key)
        try:
            document = msgspec.json.decode(data)
            wrong = next(iter(self._compiled[key].iter_errors(document)), None)
        except (msgspec.MsgspecError, ValueError, RecursionError) as broken:
            raise NotOfSchema(str(broken)) from broken
        if wrong is not None:
            place = "/".join(map(str, wrong.instance_path))
            problem = f"#/{place}: {wrong.message}" if place else f"#: {wrong.message}"
            raise NotOfSchema(problem[:_SHOWN_CHARACTERS])


class JsonSchemaCodec:
    """One schema. Documents are written as they come, without white space, once they are found valid."""

    is_blocking = True

    def __init__(
        self, text: str, references: Mapping[str, str] | None = None, *, validation: Validation
    ) -> None:
        """Raises UnusableSchema."""
        self._validation = validation
        self._schema = SchemaDocuments.of(text, references or {})
        validation.compile(self._schema)
        self._title = _title(text)

    @property
    def record_name(self) -> str | None:
        """The title of the schema."""
        return self._title

    def encode(self, data: bytes) -> bytes:
        """The document. Raises NotOfSchema where it is not valid."""
        try:
            self._validation.validate(self._schema, data)
            return plain.compact(data)
        except (errors.RestError, UnusableSchema) as broken:
            raise NotOfSchema(str(broken)) from broken

    def decode(self, framed: Framed) -> Json:
        """The document, as it was written. Raises NotOfSchema where it is not JSON."""
        try:
            msgspec.json.decode(framed.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
            raise NotOfSchema(f"the bytes are not JSON: {wrong}") from None
        return msgspec.Raw(framed.payload)


def _title(text: str) -> str | None:
    """Raises UnusableSchema."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise UnusableSchema(str(wrong)) from wrong
    title = document.get("title") if isinstance(document, dict) else None
    return title if isinstance(title, str) else None


def _find(documents: Mapping[str, Json], uri: str) -> Json:
    """A document by its name; the validator asks with the name as a URI. Raises KeyError."""
    for name, document in documents.items():
        if uri == name or uri.endswith(f"/{name}"):
            return document
    raise KeyError(uri)
