"""Settings of the proxy, in Confluent's names."""

import pytest

from headrace.errors import SettingError
from headrace.rest.settings import settings_from


def test_without_properties_it_listens_on_loopback() -> None:
    found = settings_from({})
    assert (found.host, found.port) == ("127.0.0.1", 8082)
    assert found.bootstrap_servers == "localhost:9092"
    assert found.registry_urls == ("http://localhost:8081",)
    assert (found.consumer_request_timeout_ms, found.fetch_min_bytes) == (1000, -1)
    assert found.consumer_instance_timeout_ms == 300_000
    assert found.record_max_bytes == found.request_max_bytes
    assert (found.advertised_url, found.unknown) == (None, ())


def test_confluents_file_is_understood() -> None:
    found = settings_from(
        {
            "id": "one",
            "bootstrap.servers": "PLAINTEXT://a:1, b:2",
            "schema.registry.url": "http://r1:8081,http://r2:8081/",
            "listeners": "http://0.0.0.0:8082",
            "consumer.threads": "50",
            "producer.compression.type": "zstd",
            "client.security.protocol": "PLAINTEXT",
            "something.else": "1",
        }
    )
    assert found.bootstrap_servers == "a:1,b:2"
    assert found.registry_urls == ("http://r1:8081", "http://r2:8081/")
    assert found.clients.producer == {"compression.type": "zstd"}
    assert found.unknown == ("something.else",)


@pytest.mark.parametrize(
    ("properties", "url"),
    [
        ({"advertised.listeners": "https://public:443/"}, "https://public:443"),
        ({"host.name": "box"}, "http://box:8082"),
        ({"host.name": "::1"}, "http://[::1]:8082"),
    ],
)
def test_what_links_begin_with(properties: dict[str, str], url: str) -> None:
    assert settings_from(properties).advertised_url == url


def test_no_registry_at_all() -> None:
    assert settings_from({"schema.registry.url": ""}).registry_urls == ()


def test_credentials_of_the_registry() -> None:
    found = settings_from(
        {
            "schema.registry.basic.auth.credentials.source": "USER_INFO",
            "schema.registry.basic.auth.user.info": "me:se:cret",
        }
    )
    assert found.registry_credentials == ("me", "se:cret")


@pytest.mark.parametrize(
    "properties",
    [
        {"listeners": "http://a"},
        {"listeners": "https://a:1"},
        {"listeners": "http://a:0"},
        {"advertised.listeners": "nope"},
        {"bootstrap.servers": ""},
        {"bootstrap.servers": "SASL_SSL://a:1"},
        {"schema.registry.url": "nope"},
        {"schema.registry.basic.auth.credentials.source": "NOPE"},
        {"schema.registry.basic.auth.credentials.source": "USER_INFO"},
        {"consumer.request.timeout.ms": "0"},
        {"consumer.request.timeout.ms": "x"},
        {"fetch.min.bytes": "-2"},
        {"fetch.min.bytes": "10000001"},
        {"api.v3.produce.batch.maximum.entries": "51"},
        {"api.v2.enable": "perhaps"},
        {"headrace.buffer.memory": "1000"},
        {"client.sasl.mechanism": "PLAIN"},
        {"producer.security.protocol": "SSL"},
    ],
)
def test_settings_that_are_none_are_named(properties: dict[str, str]) -> None:
    name = next(reversed(properties))
    with pytest.raises(SettingError, match=name.removeprefix("client.").replace(".", r"\.")[:20]):
        settings_from(properties)
