"""Options about formats and the registry: what they mean, and what makes no sense."""

import pytest

from headrace.pipelines.options.known_options import SOURCE_OPTIONS, OptionError, checked
from headrace.pipelines.options.schema_options import parse_formats, parse_registration
from headrace.schemas.registry_client import Reference
from headrace.schemas.subject_names import SubjectNameStrategy

AVRO = {"valueFormat": "avro", "schemaRegistry": "http://r:8081"}


def options(**more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": "b:9092",
        **{k.replace("__", "."): v for k, v in more.items()},
    }


def parsed(**more: str):  # type: ignore[no-untyped-def]
    return parse_formats(checked(options(**more), SOURCE_OPTIONS, where="a query"))


def test_without_schemas_there_is_no_registry() -> None:
    key, value, registry = parsed(valueFormat="json", valueSchema="a INT")
    assert (key.format, value.format, value.schema, registry) == ("binary", "json", "a INT", None)


def test_everything_about_a_schema() -> None:
    key, value, registry = parsed(
        valueFormat="AVRO",
        keyFormat="protobuf",
        schemaRegistry="http://a:1, http://b:2",
        valueSchemaVersion="3",
        keySchemaVersion="latest",
        keyMessage="M",
        valueSubject=" s ",
        schemaRegistry__value__subject__name__strategy="RecordNameStrategy",
        schemaRegistry__basic__auth__user__info="me:se:cret",
        schemaRegistry__context=".ctx",
        schemaRegistry__request__timeout__ms="500",
    )
    assert (value.format, value.version, value.subject) == ("avro", 3, "s")
    assert value.strategy is SubjectNameStrategy.RECORD
    assert (key.format, key.version, key.message, key.is_key) == ("protobuf", None, "M", True)
    assert registry is not None
    assert registry.urls == ("http://a:1", "http://b:2")
    assert registry.credentials == ("me", "se:cret")
    assert (registry.context, registry.request_timeout_s, registry.total_timeout_s) == (
        ".ctx",
        0.5,
        30,
    )


def test_references() -> None:
    text = '[{"name":"n","subject":"s","version":2}]'
    _, value, _ = parsed(**AVRO, valueSchema="{}", valueSchemaReferences=text)
    assert value.references == (Reference("n", "s", 2),)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"valueFormat": "avro"}, "valueFormat=avro needs schemaRegistry"),
        ({"schemaRegistry": "http://r"}, "schemaRegistry needs keyFormat or valueFormat"),
        ({**AVRO, "valueSchema": "x", "valueSchemaVersion": "1"}, "exclude each other"),
        ({**AVRO, "valueSchema": "x", "valueSchemaId": "1"}, "valueSchema and valueSchemaId exclude"),
        ({**AVRO, "valueSchemaVersion": "new"}, "valueSchemaVersion=new is not a whole number"),
        ({**AVRO, "valueSchemaVersion": str(2**31)}, "neither a version nor latest"),
        ({**AVRO, "valueSchemaReferences": "{}x"}, "valueSchemaReferences is not JSON such as"),
        ({**AVRO, "valueSchemaReferences": '[{"name":"x"}]'}, "valueSchemaReferences is not JSON"),
        ({**AVRO, "keySubject": "s"}, "keySubject needs keyFormat to be one of avro"),
        ({**AVRO, "schemaRegistry.use.latest.versions": "x"}, "did you mean 'schemaRegistry.use.latest.version'"),
        ({**AVRO, "schemaRegistry.value.subject.name.strategy": "x"}, "no subject name strategy"),
        ({**AVRO, "valueFormat": "avr"}, "did you mean 'avro'"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_told(more: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        parsed(**more)


def test_how_a_sink_finds_its_schema() -> None:
    def registration(**more: str) -> tuple[bool, bool]:
        given = checked(options(**more), SOURCE_OPTIONS, where="a query")
        found = parse_registration(given)
        return found.auto_register, found.use_latest

    assert registration() == (True, False)
    assert registration(schemaRegistry__use__latest__version="true") == (False, True)
    assert registration(schemaRegistry__auto__register__schemas="false") == (False, False)
    with pytest.raises(OptionError, match="exclude each other"):
        registration(
            schemaRegistry__use__latest__version="true",
            schemaRegistry__auto__register__schemas="true",
        )
