"""Keys and values with schemas of a registry as JSON text, for the console tools: Confluent's properties, Confluent's wire format.

Avro is shown in Avro's JSON encoding, Protobuf in Protobuf's JSON mapping. It leaves requests to the registry's client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from headrace.cli.shell.command_line import Failure, read_text
from headrace.errors import HeadraceError
from headrace.schemas.registry_client import (
    AVRO,
    JSON_SCHEMA,
    PROTOBUF,
    Reference,
    RegistryRefused,
    Schema,
    SchemaRegistryClient,
)
from headrace.schemas.registry_transport import RegistryUnreachable, TransportSettings
from headrace.schemas.subject_names import SubjectNameStrategy, parse_strategy, subject_name
from headrace.schemas.wire_format import encode_reference, parse, schema_header

if TYPE_CHECKING:
    from headrace.rest.payloads.schema_codec import SchemaCodec

Headers = Sequence[tuple[str, bytes | None]]
_LANGUAGES: Final = {"avro": AVRO, "protobuf": PROTOBUF, "jsonschema": JSON_SCHEMA}


def connect(url: str, properties: Mapping[str, str]) -> SchemaRegistryClient:
    """A client of the registry. Raises Failure for a URL that is none."""
    user_info = properties.get("basic.auth.user.info") or properties.get(
        "schema.registry.basic.auth.user.info", ""
    )
    user, _, password = user_info.partition(":")
    settings = TransportSettings(
        urls=tuple(each for each in url.split(",") if each.strip()),
        total_timeout_s=15.0,
        credentials=(user, password) if user_info else None,
        ca_file=properties.get("ssl.ca.location"),
    )
    try:
        return SchemaRegistryClient.connect(settings)
    except HeadraceError as error:
        raise Failure(str(error)) from error


class SchemaValues:
    """Reads keys and values, whatever schema they refer to."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._codecs: dict[Any, SchemaCodec] = {}

    def shown(self, data: bytes, headers: Headers, *, is_key: bool) -> bytes:
        """A key or a value as JSON text. Raises Failure."""
        try:
            framed = parse(data, schema_header(headers, is_key=is_key))
            codec = self._codecs.get(framed.schema)
            if codec is None:
                schema = self._client.schema(framed.schema).schema
                codec = self._codecs[framed.schema] = _codec(self._client, schema)
            return msgspec.json.encode(codec.decode(framed))
        except RegistryUnreachable as error:
            raise _away(error) from error
        except HeadraceError as error:
            what = "key" if is_key else "value"
            raise Failure(f"Error deserializing the {what}", why=str(error)) from error

    @staticmethod
    def schema_id(data: bytes, headers: Headers, *, is_key: bool) -> bytes:
        """The id (or the GUID) of the schema that a key or a value refers to. Raises Failure."""
        try:
            return str(parse(data, schema_header(headers, is_key=is_key)).schema).encode()
        except HeadraceError as error:
            raise Failure("Error deserializing schema id", why=str(error)) from error


class SchemaWriter:
    """Writes the keys or the values of one topic with one schema, which the properties name."""

    def __init__(
        self,
        client: SchemaRegistryClient,
        properties: Mapping[str, str],
        *,
        language: str,
        topic: str,
        is_key: bool,
    ) -> None:
        """Raises Failure where the schema cannot be had, or the registry refuses it."""
        self._client = client
        self._properties = properties
        self._part = "key" if is_key else "value"
        self._topic = topic
        self._format = language
        try:
            self._prefix, self._codec = self._prepared()
        except RegistryUnreachable as error:
            raise _away(error) from error
        except HeadraceError as error:
            raise Failure(
                f"the schema of the {self._part}s cannot be used", why=str(error)
            ) from error

    def serialized(self, text: bytes) -> bytes:
        """A key or a value for its JSON text. Raises Failure."""
        try:
            return self._prefix + self._codec.encode(text)
        except HeadraceError as error:
            shown = text.decode(errors="replace")
            raise Failure(f"Error serializing the {self._part} {shown}", why=str(error)) from error

    def _prepared(self) -> tuple[bytes, SchemaCodec]:
        properties, part = self._properties, self._part
        message = properties.get(f"{part}.schema.full.name", "").strip()
        by_id = properties.get(f"{part}.schema.id")
        if by_id is not None:
            schema_id = _number(by_id, f"{part}.schema.id")
            return self._registered(schema_id, self._client.schema(schema_id).schema, message)
        given = self._given(_LANGUAGES[self._format])
        if given is None:
            return self._newest(message)
        codec = _codec(self._client, given, message)
        subject = self._subject(codec.record_name or "")
        normalize = _flag(properties, "normalize.schemas", otherwise=False)
        use_latest = _flag(properties, "use.latest.version", otherwise=False)
        # "auto.register" is the older name.
        auto = _flag(properties, "auto.register", otherwise=not use_latest)
        if _flag(properties, "auto.register.schemas", otherwise=auto):
            found = self._client.register(subject, given, normalize=normalize)
        elif use_latest:
            return self._newest(message, subject)
        else:
            found = self._client.look_up(subject, given, normalize=normalize)
        assert found.schema_id is not None
        return encode_reference(found.schema_id), codec

    def _newest(self, message: str, subject: str = "") -> tuple[bytes, SchemaCodec]:
        """Without a schema of the user's, the newest of the subject."""
        part = self._part
        try:
            found = self._client.latest(subject or self._subject(""))
        except RegistryRefused as error:
            raise Failure(
                f"Must provide the {part} schema in either {part}.schema, {part}.schema.id, or {part}.schema.file",
                why=f"and the registry has none for the topic {self._topic}: {error}",
            ) from error
        assert found.schema_id is not None
        return self._registered(found.schema_id, found.schema, message)

    def _registered(
        self, schema_id: int, schema: Schema, message: str
    ) -> tuple[bytes, SchemaCodec]:
        """A schema that the registry has. Raises Failure where it is of another language than the user asked for."""
        if schema.schema_type != _LANGUAGES[self._format]:
            others = [name for name, each in _LANGUAGES.items() if each == schema.schema_type]
            raise Failure(
                f"the schema of the {self._part}s cannot be used",
                why=f"the schema {schema_id} is of the type {schema.schema_type}, not {_LANGUAGES[self._format]}",
                hint=f"--{self._part}-format {others[0]}" if others else "",
            )
        return encode_reference(schema_id), _codec(self._client, schema, message)

    def _given(self, language: str) -> Schema | None:
        properties, part = self._properties, self._part
        text = properties.get(f"{part}.schema")
        file = properties.get(f"{part}.schema.file")
        if text is None and file is not None:
            text = read_text(file)
        if text is None:
            return None
        return Schema(text, language, _references(properties.get(f"{part}.refs"), f"{part}.refs"))

    def _subject(self, record_name: str) -> str:
        name = f"{self._part}.subject.name.strategy"
        try:
            strategy = parse_strategy(self._properties.get(name, SubjectNameStrategy.TOPIC.value))
        except ValueError as error:
            raise Failure(f"{name}: {error}") from error
        return subject_name(
            strategy, self._topic, is_key=self._part == "key", record_name=record_name
        )


def _codec(client: SchemaRegistryClient, schema: Schema, message: str = "") -> SchemaCodec:
    try:
        return _loaded_codec(client, schema, message)
    except ImportError as error:
        raise Failure(
            f"schemas of the type {schema.schema_type} need the extra 'services'",
            why=str(error),
            hint="pip install 'headrace[services]'",
        ) from None


def _loaded_codec(client: SchemaRegistryClient, schema: Schema, message: str) -> SchemaCodec:
    references = {each.name: each.schema.text for each in client.dependencies(schema)}
    if schema.schema_type == AVRO:
        from headrace.rest.payloads.avro_json import AvroCodec

        return AvroCodec(schema.text, references.values())
    if schema.schema_type == JSON_SCHEMA:
        from headrace.rest.payloads.json_schema_data import JsonSchemaCodec, Validators

        return JsonSchemaCodec(schema.text, references, validation=Validators())
    from headrace.rest.payloads.protobuf_json import ProtobufCodec
    from headrace.schemas.formats.protobuf.language import ProtobufFormat, ProtobufSchema

    parsed = ProtobufFormat().parse(schema.text, references, is_new=False)
    assert isinstance(parsed, ProtobufSchema)
    return ProtobufCodec(parsed.files.values(), message=message)


def _references(text: str | None, name: str) -> tuple[Reference, ...]:
    if text is None:
        return ()
    try:
        return tuple(
            Reference(each["name"], each["subject"], int(each["version"]))
            for each in json.loads(text)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(
            f"{name} is not a list of references",
            why=str(error),
            hint='such as [{"name":"a.b.C","subject":"c-value","version":1}]',
        ) from error


def _number(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Failure(f"Error parsing {name} as int", why=f"it is '{text}'") from None


def _flag(properties: Mapping[str, str], name: str, *, otherwise: bool) -> bool:
    return properties.get(name, str(otherwise)).strip().lower() == "true"


def _away(error: RegistryUnreachable) -> Failure:
    return Failure(
        "the schema registry cannot be reached",
        why=str(error),
        hint="check --schema-registry (or the property schema.registry.url); 'headrace schema-registry-start' starts one",
    )
