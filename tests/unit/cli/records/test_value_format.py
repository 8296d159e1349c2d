"""Formats of keys and values: our names, Java's classes, and who counts more."""

from argparse import Namespace

import pytest

from headrace.cli.records.value_format import Formats, chosen_formats, confluent_format
from headrace.cli.shell.command_line import Failure

SERIALIZATION = "org.apache.kafka.common.serialization"


def chosen(
    properties: dict[str, str] | None = None, *, confluent: str = "", **options: str
) -> Formats:
    given = {"key_format": None, "value_format": None, "schema_registry": None, **options}
    return chosen_formats(
        Namespace(**given), properties or {}, confluent=confluent, key_class="key.serializer"
    )


def test_text_needs_no_registry() -> None:
    assert chosen() == Formats("string", "string", "")
    assert not chosen(value_format="json").has_schemas


def test_a_registry_is_looked_for_on_this_machine() -> None:
    assert chosen(value_format="avro") == Formats("string", "avro", "http://localhost:8081")
    url = {"schema.registry.url": "http://r:1"}
    assert chosen(url, value_format="avro").registry_url == "http://r:1"
    assert (
        chosen(url, value_format="avro", schema_registry="http://s:2").registry_url == "http://s:2"
    )


def test_confluents_classes_are_for_keys_and_values() -> None:
    assert confluent_format("io.confluent.kafka.formatter.AvroMessageReader") == "avro"
    assert confluent_format("io.confluent.kafka.formatter.json.JsonSchemaMessageFormatter") == "jsonschema"  # fmt: skip
    assert confluent_format("org.apache.kafka.tools.LineMessageReader") == ""
    assert chosen(confluent="avro")[:2] == ("avro", "avro")
    long = {"key.serializer": f"{SERIALIZATION}.LongSerializer"}
    assert chosen(long, confluent="avro")[:2] == ("long", "avro")
    text = {"key.serializer": f"{SERIALIZATION}.StringSerializer"}
    assert chosen(text, confluent="protobuf")[:2] == ("string", "protobuf")
    schema = {"key.serializer": "io.confluent.kafka.serializers.KafkaAvroSerializer"}
    assert chosen(schema, confluent="protobuf")[:2] == ("avro", "protobuf")


def test_a_class_that_is_not_known_is_told() -> None:
    with pytest.raises(Failure) as refused:
        chosen({"key.serializer": "org.me.Mine"})
    assert refused.value.what == "the class org.me.Mine is not known"
