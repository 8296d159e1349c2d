"""The project's registry client against a real registry: every call, several URLs, a restart, a registry that is away."""

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.schemas.registry_client import (
    PROTOBUF,
    VERSION_NOT_FOUND,
    Reference,
    RegistryRefused,
    Schema,
    SchemaRegistryClient,
)
from headrace.schemas.registry_transport import RegistryUnreachable, TransportSettings
from tests.support.registry_process import RegistryProcess
from tests.support.server_process import free_port


def client_of(*urls: str, total_timeout_s: float = 30.0) -> SchemaRegistryClient:
    return SchemaRegistryClient.connect(TransportSettings(urls, total_timeout_s=total_timeout_s))


def own_schema() -> Schema:
    return Schema(json.dumps({"type": "fixed", "name": f"F{uuid.uuid4().hex}", "size": 1}))


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with client_of(registry.url) as client:
        yield client


def test_register_and_find_again(client: SchemaRegistryClient) -> None:
    subject, schema = f"s/{uuid.uuid4()}", own_schema()
    registered = client.register(subject, schema)
    number = registered.schema_id
    assert number is not None
    assert registered.guid is not None
    found = client.schema(number)
    assert json.loads(found.schema.text) == json.loads(schema.text)
    assert client.schema(registered.guid).schema == found.schema
    assert client.latest(subject)._replace(guid=None) == found._replace(
        subject=subject, version=1, guid=None
    )
    assert client.version(subject, 1).schema_id == number
    assert client.look_up(subject, schema).version == 1
    with pytest.raises(RegistryRefused) as refused:
        client.version(subject, 2)
    assert refused.value.code == VERSION_NOT_FOUND


def test_references_are_collected(client: SchemaRegistryClient) -> None:
    subject = f"s-{uuid.uuid4()}"
    other = Schema('syntax = "proto3"; message Other { string a = 1; }', PROTOBUF)
    client.register(subject, other)
    text = 'syntax = "proto3"; import "other.proto"; message M { Other o = 1; }'
    schema = Schema(text, PROTOBUF, (Reference("other.proto", subject, 1),))
    number = client.register(f"{subject}-m", schema).schema_id
    assert number is not None
    (found,) = client.dependencies(client.schema(number).schema)
    assert found.name == "other.proto"
    assert "message Other" in found.schema.text


def test_threads_share_a_client(client: SchemaRegistryClient) -> None:
    schemas = [own_schema() for _ in range(40)]
    subjects = [f"s-{uuid.uuid4()}" for _ in schemas]
    with ThreadPoolExecutor(16) as threads:
        ids = list(
            threads.map(
                lambda each: client.register(*each).schema_id, zip(subjects, schemas, strict=True)
            )
        )
        found = list(threads.map(client.schema, [each for each in ids if each is not None]))
    assert len(set(ids)) == 40
    assert [json.loads(each.schema.text) for each in found] == [
        json.loads(each.text) for each in schemas
    ]


def test_a_url_where_nobody_listens_costs_nothing_but_the_attempt(
    registry: RegistryProcess,
) -> None:
    with client_of(f"http://127.0.0.1:{free_port()}", registry.url) as client:
        assert client.register(f"s-{uuid.uuid4()}", own_schema()).schema_id is not None


def test_a_registry_that_is_away_is_told() -> None:
    client = client_of(f"http://127.0.0.1:{free_port()}", total_timeout_s=0.5)
    with client, pytest.raises(RegistryUnreachable, match="refused"):
        client.schema(1)
