"""Options about the format of keys and values, and about the schema registry, as values. Pure.

`schemaRegistry.NAME` is a setting of Confluent's serializers, as `kafka.NAME` is one of Kafka's clients.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headrace.pipelines.options.known_options import OptionError, Options
from headrace.schemas.subject_names import SubjectNameStrategy, parse_strategy

if TYPE_CHECKING:
    from headrace.schemas.registry_client import Reference

SCHEMA_FORMATS: Final = ("avro", "protobuf", "jsonschema")
FORMATS: Final = ("binary", "string", "json", *SCHEMA_FORMATS)
_MAX_VERSION: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """Where the schema registry is, and how it is asked."""

    urls: tuple[str, ...]
    credentials: tuple[str, str] | None
    ca_file: str | None
    request_timeout_s: float
    total_timeout_s: float
    context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """The format of a column, `key` or `value`, and which schema it has."""

    column: str
    format: str
    schema: str = ""  # the user's own: DDL for JSON, else a text of the schema language
    references: tuple[Reference, ...] = ()
    version: int | None = None  # of the subject; None is the newest
    schema_id: int | None = None
    subject: str = ""
    strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC
    message: str = ""

    @property
    def has_registry(self) -> bool:
        """Whether schemas of this format come from a registry."""
        return self.format in SCHEMA_FORMATS

    @property
    def is_key(self) -> bool:
        return self.column == "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """How a sink finds the schema that it writes with, in Confluent's words."""

    auto_register: bool
    use_latest: bool
    normalize: bool


def parse_formats(options: Options) -> tuple[FormatOptions, FormatOptions, RegistryOptions | None]:
    """The formats of key and value, and the registry that they need. Raises OptionError."""
    key, value = _format(options, "key"), _format(options, "value")
    registry = parse_registry(options)
    for each in (key, value):
        if each.has_registry and registry is None:
            raise OptionError(
                f"{each.column}Format={each.format} needs schemaRegistry: the URL of a schema registry,"
                " such as http://localhost:8081"
            )
    if registry is not None and not (key.has_registry or value.has_registry):
        raise OptionError(
            f"schemaRegistry needs keyFormat or valueFormat to be one of {', '.join(SCHEMA_FORMATS)}"
        )
    return key, value, registry


def parse_registry(options: Options) -> RegistryOptions | None:
    """The registry, or None where no URL is given. Raises OptionError."""
    text = options.text("schemaRegistry") or options.registry("url")
    urls = tuple(each.strip() for each in text.split(",") if each.strip())
    if not urls:
        return None
    user_info = options.registry("basic.auth.user.info")
    user, _, password = user_info.partition(":")
    return RegistryOptions(
        urls=urls,
        credentials=(user, password) if user_info else None,
        ca_file=options.registry("ssl.ca.location") or None,
        request_timeout_s=options.registry_number("request.timeout.ms", 10_000) / 1000,
        total_timeout_s=options.registry_number("total.timeout.ms", 30_000) / 1000,
        context=options.registry("context"),
    )


def parse_registration(options: Options) -> Registration:
    """Raises OptionError."""
    use_latest = options.flag("schemaRegistry.use.latest.version", otherwise=False)
    auto_register = options.flag("schemaRegistry.auto.register.schemas", otherwise=not use_latest)
    if use_latest and auto_register:
        raise OptionError(
            "schemaRegistry.use.latest.version=true and schemaRegistry.auto.register.schemas=true"
            " exclude each other"
        )
    return Registration(
        auto_register=auto_register,
        use_latest=use_latest,
        normalize=options.flag("schemaRegistry.normalize.schemas", otherwise=False),
    )


def _format(options: Options, column: str) -> FormatOptions:
    name = options.one_of(f"{column}Format", FORMATS, "binary")
    schema = options.text(f"{column}Schema")
    if name not in SCHEMA_FORMATS:
        _refuse_others(options, column, schema, name)
        return FormatOptions(column=column, format=name, schema=schema)
    version = _version(options, f"{column}SchemaVersion")
    schema_id = options.number(f"{column}SchemaId", at_least=0)
    if schema and (version is not None or schema_id is not None):
        raise OptionError(
            f"{column}Schema and {column}Schema{'Version' if schema_id is None else 'Id'} exclude each other"
        )
    strategy_name = f"schemaRegistry.{column}.subject.name.strategy"
    try:
        strategy = parse_strategy(options.text(strategy_name, SubjectNameStrategy.TOPIC.value))
    except ValueError as error:
        raise OptionError(f"{strategy_name}: {error}") from error
    return FormatOptions(
        column=column,
        format=name,
        schema=schema,
        references=_references(options, f"{column}SchemaReferences"),
        version=version,
        schema_id=schema_id,
        subject=options.text(f"{column}Subject").strip(),
        strategy=strategy,
        message=options.text(f"{column}Message").strip(),
    )


def _refuse_others(options: Options, column: str, schema: str, name: str) -> None:
    if schema and name != "json":
        raise OptionError(
            f"{column}Schema needs {column}Format to be one of json, {', '.join(SCHEMA_FORMATS)}"
        )
    for rest in ("SchemaVersion", "SchemaId", "SchemaReferences", "Subject", "Message"):
        if options.has(f"{column}{rest}"):
            raise OptionError(
                f"{column}{rest} needs {column}Format to be one of {', '.join(SCHEMA_FORMATS)}"
            )


def _version(options: Options, name: str) -> int | None:
    if options.text(name, "latest").strip().lower() in ("latest", "-1"):
        return None
    number = options.number(name)
    if number is not None and number > _MAX_VERSION:
        raise OptionError(f"{name}={number} is neither a version nor latest")
    return number


def _references(options: Options, name: str) -> tuple[Reference, ...]:
    """`[{"name": …, "subject": …, "version": …}]`, as Confluent's console tools take them."""
    text = options.text(name).strip()
    if not text:
        return ()
    from headrace.schemas.registry_client import Reference

    try:
        return tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in json.loads(text)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise OptionError(
            f'{name} is not JSON such as [{{"name":"a.b.C","subject":"c-value","version":1}}]: {error}'
        ) from error
