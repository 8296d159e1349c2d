"""The console tools with schemas of a registry, called as ours and as Confluent's are."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.schemas.wire_format import VALUE_HEADER, encode_reference
from tests.programs.conftest import Headrace, Unique
from tests.support.registry_process import RegistryProcess

ROOT = Path(__file__).parents[2]
USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},{"name":"age","type":["null","int"],"default":null}]}'
LINES = b'{"name":"Ada","age":{"int":36}}\n{"name":"Bob","age":null}\n'


@pytest.fixture(scope="module")
def registry(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry"), address) as running:
        running.await_primary()
        yield running


def properties(name: str, **values: str) -> list[str]:
    return [
        word for key, value in values.items() for word in (name, f"{key.replace('_', '.')}={value}")
    ]


def consumed(headrace: Headrace, topic: str, *arguments: str, count: int = 2) -> str:
    return headrace(
        *("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", str(count)),
        *arguments,
    ).stdout


def test_avro_values_with_a_schema_of_the_users(
    headrace: Headrace, unique: Unique, registry: RegistryProcess
) -> None:
    topic = unique("users")
    formats = ("--value-format", "avro", "--schema-registry", registry.url)
    headrace(
        *("console-producer", "--topic", topic, *formats),
        *properties("--reader-property", value_schema=USER),
        stdin=LINES,
    )
    assert consumed(headrace, topic, *formats) == LINES.decode()
    status, found = registry.ask("GET", f"/subjects/{topic}-value/versions/latest")
    assert (status, json.loads(found["schema"])) == (200, json.loads(USER))
    # Without a schema of one's own, the newest of the subject is taken.
    headrace("console-producer", "--topic", topic, *formats, stdin=b'{"name":"Eve","age":null}\n')
    assert consumed(headrace, topic, *formats, count=3).endswith('{"name":"Eve","age":null}\n')


def test_confluents_command_line(
    headrace: Headrace, unique: Unique, registry: RegistryProcess, address: str
) -> None:
    topic = unique("users")

    def run(script: str, *arguments: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [ROOT / "bin" / script, "--bootstrap-server", address, "--topic", topic, *arguments],
            input=stdin,
            capture_output=True,
            env={**os.environ, "TZ": "UTC"},
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    writing = properties(
        "--property",
        schema_registry_url=registry.url,
        parse_key="true",
        key_schema='"long"',
        value_schema=USER,
    )
    run("kafka-avro-console-producer", *writing, stdin=b'7\t{"name":"Ada","age":{"int":36}}\n')
    reading = properties(
        "--property",
        schema_registry_url=registry.url,
        print_key="true",
        print_schema_ids="true",
        schema_id_separator="|",
    )
    ids = [
        registry.ask("GET", f"/subjects/{topic}-{part}/versions/1")[1]["id"]
        for part in ("key", "value")
    ]
    ending = ("--from-beginning", "--max-messages", "1")
    found = run("kafka-avro-console-consumer", *reading, *ending)
    assert found.decode() == f'7|{ids[0]}\t{{"name":"Ada","age":{{"int":36}}}}|{ids[1]}\n'
    texts = properties(
        "--property",
        schema_registry_url=registry.url,
        parse_key="true",
        key_serializer="org.apache.kafka.common.serialization.LongSerializer",
        value_schema_id=str(ids[1]),
        key_separator=":",
    )
    run("kafka-avro-console-producer", *texts, stdin=b'8:{"name":"Bob","age":null}\n')
    plain_keys = properties(
        "--property",
        schema_registry_url=registry.url,
        print_key="true",
        key_deserializer="org.apache.kafka.common.serialization.LongDeserializer",
    )
    second = ("--partition", "0", "--offset", "1", "--max-messages", "1")
    last = run("kafka-avro-console-consumer", *plain_keys, *second)
    assert last == b'8\t{"name":"Bob","age":null}\n'


@pytest.mark.parametrize(
    ("language", "schema", "line", "wrong"),
    [
        (
            "protobuf",
            'syntax = "proto3"; message Other { int32 x = 1; } message M { string a_name = 1; repeated int64 n = 2; }',
            '{"aName":"x","n":["1"]}',
            b'{"aName":7}\n',
        ),
        (
            "jsonschema",
            '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}',
            '{"a":1}',
            b'{"a":"x"}\n',
        ),
    ],
)
def test_the_other_languages(
    headrace: Headrace,
    unique: Unique,
    registry: RegistryProcess,
    language: str,
    schema: str,
    line: str,
    wrong: bytes,
) -> None:
    topic = unique(language)
    formats = ("--value-format", language, "--schema-registry", registry.url)
    writing = properties("--reader-property", value_schema=schema, value_schema_full_name="M")
    headrace("console-producer", "--topic", topic, *formats, *writing, stdin=line.encode())
    assert json.loads(consumed(headrace, topic, *formats, count=1)) == json.loads(line)
    refused = headrace(
        "console-producer", "--topic", topic, *formats, *writing, stdin=wrong, succeed=False
    )
    assert "Error serializing the value" in refused.stderr
    assert refused.exit_code == 1


def test_plain_formats(headrace: Headrace, unique: Unique) -> None:
    topic = unique("plain")
    key = ("--key-format", "integer", "--value-format", "json")
    headrace(
        *("console-producer", "--topic", topic, *key, "--reader-property", "parse.key=true"),
        stdin=b'5\t{"a": [1]}\n',
    )
    shown = consumed(headrace, topic, *key, "--formatter-property", "print.key=true", count=1)
    assert shown == '5\t{"a": [1]}\n'
    refused = headrace("console-producer", "--topic", topic, *key, stdin=b"{\n", succeed=False)
    assert "not JSON: {" in refused.stderr


def test_the_reference_may_stand_in_a_header(
    headrace: Headrace, unique: Unique, registry: RegistryProcess, address: str
) -> None:
    topic = unique("headers")
    headrace("topics", "--create", "--topic", topic, "--partitions", "1")
    _, body = registry.register(f"{topic}-value", '"string"')
    producer = Producer({"bootstrap.servers": address})
    headers: list[tuple[str, str | bytes | None]] = [(VALUE_HEADER, encode_reference(body["id"]))]
    producer.produce(topic, b"\x06abc", headers=headers)
    assert producer.flush(20) == 0
    formats = ("--value-format", "avro", "--schema-registry", registry.url)
    assert consumed(headrace, topic, *formats, count=1) == '"abc"\n'


def test_what_is_wrong_is_told(
    headrace: Headrace, unique: Unique, registry: RegistryProcess, address: str
) -> None:
    topic = unique("wrong")
    headrace("topics", "--create", "--topic", topic, "--partitions", "1")
    formats = ("--value-format", "avro", "--schema-registry", registry.url)
    missing = headrace("console-producer", "--topic", topic, *formats, succeed=False)
    assert (
        "Must provide the value schema in either value.schema, value.schema.id, or value.schema.file"
        in missing.stderr
    )
    away = headrace(
        *("console-producer", "--topic", topic, "--value-format", "avro"),
        *("--schema-registry", "http://127.0.0.1:9"),
        *properties("--reader-property", value_schema=USER),
        succeed=False,
    )
    assert "the schema registry cannot be reached" in away.stderr
    headrace("console-producer", "--topic", topic, stdin=b"plain text\n")
    reading = ("console-consumer", "--topic", topic, "--from-beginning", *formats)
    unreadable = headrace(*reading, "--max-messages", "1", succeed=False)
    assert f"the record at offset 0 of {topic}-0 cannot be printed" in unreadable.stderr
    assert "Error deserializing the value" in unreadable.stderr
    assert "unknown magic byte 0x70" in unreadable.stderr
    skipped = headrace(*reading, "--timeout-ms", "2000", "--skip-message-on-error")
    assert f"skipping this message: the record at offset 0 of {topic}-0" in skipped.stderr
    headrace(
        *("console-producer", "--topic", topic, *formats),
        *properties("--reader-property", value_schema='"string"'),
        stdin=b'"x"\n',
    )
    changed = headrace(
        *("console-producer", "--topic", topic, *formats),
        *properties("--reader-property", value_schema='"int"'),
        stdin=b"1\n",
        succeed=False,
    )
    assert "incompatible with an earlier schema" in changed.stderr
    assert high_watermark(address, topic) == 2


def high_watermark(address: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused"})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
        return high
    finally:
        consumer.close()
