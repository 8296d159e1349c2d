"""Which format and subject a topic has, by its name and by its records."""

import json
from uuid import UUID

from headrace.pipelines.columns.schema_discovery import Sample, discovered, is_listening
from headrace.schemas.registry_client import SchemaRegistryClient
from headrace.schemas.registry_transport import Answer
from headrace.schemas.wire_format import KEY_HEADER, VALUE_HEADER, encode_reference

GUID = UUID(int=5)


class Registry:
    """A transport that answers from a table."""

    def __init__(self, **subjects: str) -> None:
        self._answers = {
            f"/subjects/{name}/versions/latest": {"schema": "{}", "id": 1, "schemaType": kind}
            for name, kind in subjects.items()
        }
        self._answers["/schemas/ids/7"] = {"schema": "{}", "schemaType": "PROTOBUF"}
        self._answers["/schemas/ids/8"] = {"schema": '"int"'}
        self._answers[f"/schemas/guids/{GUID}"] = {"schema": '"int"', "id": 9}
        self._lists = {"/schemas/ids/7/subjects": ["shop.Order"], "/schemas/ids/8/subjects": []}

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        found = self._lists.get(path, self._answers.get(path))
        if found is None:
            return Answer(404, b'{"error_code":40403,"message":"Schema not found"}')
        return Answer(200, json.dumps(found).encode())

    def close(self) -> None:
        pass


def found(*data: bytes, column: str = "value", **subjects: str) -> dict[str, str]:
    client = SchemaRegistryClient(Registry(**subjects))
    return discovered(client, "t", column, [Sample(each) for each in data])


def framed(number: int) -> bytes:
    return encode_reference(number) + b"x"


def test_the_subject_of_the_topic_counts_first() -> None:
    known = {"valueFormat": "jsonschema", "valueSubject": "t-value"}
    assert found(framed(7), **{"t-value": "JSON"}) == known
    assert found(**{"t-value": "JSON"}) == known
    assert found(b"text", **{"t-value": "JSON"}) == {}
    assert found(framed(1), column="key", **{"t-key": "AVRO"}) == {
        "keyFormat": "avro",
        "keySubject": "t-key",
    }


def test_else_the_records_tell() -> None:
    assert found(framed(7)) == {"valueFormat": "protobuf", "valueSubject": "shop.Order"}
    assert found(framed(99), framed(7)) == {"valueFormat": "protobuf", "valueSubject": "shop.Order"}
    assert found(framed(8)) == {"valueFormat": "avro", "valueSchemaId": "8"}
    assert found(encode_reference(GUID)) == {"valueFormat": "avro", "valueSchemaId": "9"}
    assert found(framed(99)) == {}


def test_a_few_bytes_that_look_like_a_reference_are_none() -> None:
    assert found(framed(7), b"text", b"more text") == {}
    assert found() == {}


def test_references_in_headers() -> None:
    client = SchemaRegistryClient(Registry())
    bare = [Sample(b"bare", [(VALUE_HEADER, encode_reference(7))])]
    assert discovered(client, "t", "value", bare)["valueFormat"] == "protobuf"
    other = [Sample(b"bare", [(KEY_HEADER, encode_reference(7))])]
    assert discovered(client, "t", "value", other) == {}


def test_nobody_listens() -> None:
    assert not is_listening("http://127.0.0.1:1")
    assert not is_listening("nonsense")
