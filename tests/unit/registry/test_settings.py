"""Settings of the registry: defaults, Confluent's notations, and what is refused."""

import pytest

from headrace.errors import SettingError
from headrace.registry.compatibility import Level
from headrace.registry.settings import settings_from


def test_without_settings_it_listens_on_loopback() -> None:
    settings = settings_from({}, this_host="here")
    assert (settings.host, settings.port, settings.advertised_host) == (
        "127.0.0.1",
        8081,
        "127.0.0.1",
    )
    assert settings.level is Level.BACKWARD


def test_a_file_of_confluents() -> None:
    given = {
        "listeners": "http://0.0.0.0:9000",
        "kafkastore.bootstrap.servers": "PLAINTEXT://a:1, PLAINTEXT://b:2",
        "avro.compatibility.level": "full_transitive",
        "debug": "false",
    }
    settings = settings_from(given, this_host="here")
    assert (settings.port, settings.advertised_host) == (9000, "here")
    assert settings.bootstrap_servers == "a:1,b:2"
    assert settings.level is Level.FULL_TRANSITIVE
    assert settings.unknown == ("debug",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listeners", "https://a:1"),
        ("listeners", "a:1"),
        ("listeners", "http://a:0"),
        ("kafkastore.bootstrap.servers", ""),
        ("kafkastore.bootstrap.servers", "SSL://a:1"),
        ("kafkastore.security.protocol", "SASL_SSL"),
        ("kafkastore.timeout.ms", "soon"),
        ("kafkastore.topic.replication.factor", "0"),
        ("leader.eligibility", "perhaps"),
        ("schema.compatibility.level", "some"),
    ],
)
def test_a_bad_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        settings_from({name: value}, this_host="here")
