import re
from pathlib import Path
from typing import get_type_hints

import pytest

import headrace
from headrace.errors import SettingError
from headrace.settings import definitions
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.definitions.setting import Effect, Setting
from headrace.settings.definitions.value_type import ValueType, shown
from headrace.settings.listener import Listener
from headrace.settings.resolution import TOPIC_SYNONYMS
from headrace.settings.topic_config import TopicConfig

LOOPBACK = Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")
# What other settings become attributes of another name or shape.
READ_IN_ANOTHER_SHAPE = {
    "broker.id",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "log.dir",
    "port",
    "host.name",
    "advertised.host.name",
    "advertised.port",
}
# Attributes from which `BrokerSettings` makes what others read.
USED_AT_HOME = {"queued_max_request_bytes"}


def from_properties(**properties: str) -> BrokerSettings:
    return BrokerSettings.from_properties(
        {name.replace("_", "."): value for name, value in properties.items()}
    )


def test_nothing_given_is_a_broker_on_loopback() -> None:
    settings = BrokerSettings.from_properties({}, default_log_dir="/var/lib/headrace")
    assert settings.node_id == 1
    assert settings.listeners == (LOOPBACK,)
    assert settings.advertised_listeners is None
    assert settings.inter_broker_listener == LOOPBACK
    assert settings.log_dirs == ("/var/lib/headrace",)
    assert settings.zookeeper_connect is None
    assert settings.offsets_topic_num_partitions == 50
    assert settings.warnings == ()
    assert not settings.is_set("num.partitions")


def test_a_tutorial_file_of_the_zookeeper_days() -> None:
    settings = BrokerSettings.from_properties(
        {
            "broker.id": "3",
            "port": "9095",
            "log.dirs": "/tmp/a, /tmp/b",
            "num.network.threads": "3",
            "zookeeper.connect": "localhost:2181",
            "delete.topic.enable": "true",
        }
    )
    assert settings.node_id == 3
    assert settings.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9095, "PLAINTEXT"),)
    assert settings.log_dirs == ("/tmp/a", "/tmp/b")
    assert settings.zookeeper_connect == "localhost:2181"
    assert settings.zookeeper_connection_timeout_ms == settings.zookeeper_session_timeout_ms
    assert settings.warnings == ()


def test_a_kraft_file_works_without_its_controller_listener() -> None:
    settings = BrokerSettings.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert settings.listeners == (Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert settings.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),)
    assert settings.warnings == ()


def test_listeners_have_names_and_protocols() -> None:
    settings = from_properties(
        listeners="inside://[::1]:9092,OUTSIDE://0.0.0.0:9093",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
    )
    inside, outside = settings.listeners
    assert inside == Listener("INSIDE", "::1", 9092, "PLAINTEXT")
    assert str(inside) == "INSIDE://[::1]:9092"
    assert outside.protocol == "PLAINTEXT"
    assert settings.inter_broker_listener == inside


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"listeners": "9092"}, "listeners: 9092: expected NAME://host:port"),
        ({"listeners": "X://a:1"}, "listeners: X://a:1: .*has no protocol for X"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "two listeners named PLAINTEXT"),
        ({"listeners": "PLAINTEXT://a:99999"}, "there is no port 99999"),
        ({"listeners": "CONTROLLER://a:1"}, "none is left for clients"),
        ({"advertised.listeners": "SSL://a:1"}, "advertised.listeners: SSL://a:1: .* has no SSL"),
        ({"advertised.listeners": "PLAINTEXT://kafka..example:1"}, "cannot be a host name"),
        ({"listeners": f"PLAINTEXT://{'a' * 64}.example:1"}, "cannot be a host name"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "a client cannot dial that host"),
        ({"inter.broker.listener.name": "X"}, "inter.broker.listener.name: .*no X"),
        ({"listener.security.protocol.map": "A:TLS"}, "listener.security.protocol.map: A:TLS"),
        ({"max.connections.per.ip.overrides": "a:b"}, "a:b: expected address:number"),
        ({"queued.max.request.bytes": "5"}, "must be larger or equal to socket.request.max.bytes"),
        ({"log.retention.hours": "0"}, "log.retention.ms must be unlimited"),
        ({"group.max.session.timeout.ms": "1"}, "group.max.session.timeout.ms must be greater"),
        ({"node.id": "1", "broker.id": "2"}, "node.id. to the same value as .broker.id"),
        ({"headrace.http.listeners": "ftp://a:1"}, "headrace.http.listeners: ftp://a:1"),
        ({"zookeeper.connect": ""}, "zookeeper.connect is empty"),
        ({"zookeeper.connect": "/kafka"}, "zookeeper.connect: '' in /kafka is not host:port"),
        ({"zookeeper.connect": "a:2181,,b:2181"}, "zookeeper.connect: '' in a:2181,,b:2181"),
        ({"zookeeper.connect": "a:x/kafka"}, "zookeeper.connect: 'a:x' in a:x/kafka is not host"),
        ({"zookeeper.connect": "a:99999"}, "zookeeper.connect: 'a:99999'"),
        ({"num.partitions": "many"}, "Invalid value many for configuration num.partitions"),
    ],
)
def test_what_cannot_work_is_refused_by_name(properties: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        BrokerSettings.from_properties(properties)


def test_every_malformed_value_is_told_at_once() -> None:
    with pytest.raises(SettingError) as raised:
        BrokerSettings.from_properties({"num.partitions": "x", "log.cleaner.enable": "y"})
    assert len(str(raised.value).splitlines()) == 2


def test_unknown_names_are_warnings() -> None:
    settings = BrokerSettings.from_properties(
        {
            "log.retention.hour": "5",
            "rsm.config.bucket": "b",
            "listener.name.plaintext.num.network.threads": "5",
        }
    )
    assert settings.warnings == (
        "log.retention.hour: unknown setting; nearest known name: log.retention.hours",
    )


SECURED = {
    "listeners": "PLAINTEXT://:9092,SSL://:9093,SASL_SSL://:9094,CONTROLLER://:9095",
    "security.inter.broker.protocol": "SSL",
    "ssl.keystore.location": "/etc/kafka/broker.jks",
    "ssl.keystore.password": "secret",
    "ssl.client.auth": "required",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": "ScramLoginModule required;",
    "listener.name.ssl.ssl.truststore.location": "/etc/kafka/trust.jks",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


def test_security_that_cannot_be_honoured_stops_the_start_and_is_named() -> None:
    with pytest.raises(SettingError) as raised:
        BrokerSettings.from_properties(SECURED)
    lines = str(raised.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["listeners", *SECURED]
    assert "listeners: SSL://:9093: the security protocol SSL" in lines[0]
    assert "listeners: SASL_SSL://:9094: the security protocol SASL_SSL" in lines[1]
    assert "secret" not in str(raised.value)


def a_text_other_than_the_default(setting: Setting) -> str:
    match setting.type:
        case ValueType.BOOLEAN:
            return str(not setting.default)
        case ValueType.INT | ValueType.LONG | ValueType.SHORT:
            return str(7 if setting.default is None else int(str(setting.default)) - 1)
        case ValueType.DOUBLE:
            return "0.6"
        case _:
            choices = getattr(setting.check, "words", ()) or ("something",)
            return str(next(word for word in choices if word != setting.default))


@pytest.mark.parametrize(
    "setting",
    [
        row
        for table in (definitions.BROKER, definitions.UNLISTED)
        for row in table.values()
        if row.effect is Effect.REFUSED
    ],
    ids=lambda setting: setting.name,
)
def test_a_refused_setting_is_refused_by_name(setting: Setting) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(setting.name)}: not supported"):
        BrokerSettings.from_properties({setting.name: a_text_other_than_the_default(setting)})


@pytest.mark.parametrize(
    "properties",
    [
        {"ssl.keystore.locaton": "/etc/kafka/broker.jks"},
        {"listener.name.plaintext.ssl.keystore.locaton": "/etc/kafka/broker.jks"},
        {"authorizer.server.properties": "x"},
        {"zookeeper.ssl.protocol": "TLSv1.3"},
        {"listener.name.plaintext.max.connections": "5"},
    ],
)
def test_what_would_be_lost_in_silence_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(SettingError, match=next(iter(properties))):
        BrokerSettings.from_properties(properties)


def test_the_defaults_of_security_are_no_reason_to_refuse() -> None:
    defaults = {
        row.name: shown(row.default)
        for table in (definitions.BROKER, definitions.UNLISTED)
        for row in table.values()
        if row.effect is Effect.REFUSED and row.default is not None
    }
    assert BrokerSettings.from_properties(defaults).warnings == ()


def test_security_cannot_be_set_while_running_either() -> None:
    settings = BrokerSettings.from_properties({})
    with pytest.raises(SettingError, match=r"listener.name.plaintext.ssl.keystore.location: not"):
        settings.with_dynamic(
            default={}, broker={"listener.name.plaintext.ssl.keystore.location": "/x"}
        )


def test_http_listeners() -> None:
    settings = from_properties(headrace_http_listeners="http://127.0.0.1:9404,http://:0")
    assert settings.headrace_http_listeners == (
        Listener("HTTP", "127.0.0.1", 9404, "HTTP"),
        Listener("HTTP", "", 0, "HTTP"),
    )


def test_dynamic_configs_win_in_order() -> None:
    settings = BrokerSettings.from_properties({"log.retention.hours": "1", "num.partitions": "4"})
    assert settings.topic_defaults.retention_ms == 3_600_000
    changed = settings.with_dynamic(
        default={"log.retention.ms": "5000", "max.connections": "7"},
        broker={"max.connections": "9"},
    )
    assert changed.topic_defaults.retention_ms == 5000
    assert changed.max_connections == 9
    assert changed.num_partitions == 4
    assert changed.is_set("log.retention.ms")
    assert settings.max_connections == 2**31 - 1


def test_request_memory_always_has_a_limit() -> None:
    assert from_properties().request_memory_bytes == 256 * 1024 * 1024
    assert from_properties(socket_request_max_bytes="1000000000").request_memory_bytes == 2 * 10**9
    assert from_properties(queued_max_request_bytes="200000000").request_memory_bytes == 2 * 10**8


def test_attributes_have_the_types_of_their_settings() -> None:
    settings = BrokerSettings.from_properties({})
    kinds: dict[ValueType, set[object]] = {
        ValueType.BOOLEAN: {bool},
        ValueType.INT: {int},
        ValueType.SHORT: {int},
        ValueType.LONG: {int},
        ValueType.DOUBLE: {float},
        ValueType.STRING: {str, str | None},
        ValueType.LIST: {tuple[str, ...]},
    }
    derived = {
        "listeners",
        "advertised.listeners",
        "max.connections.per.ip.overrides",
        "node.id",
        "log.dirs",
        "headrace.http.listeners",
        "zookeeper.connection.timeout.ms",
        "cleanup.policy",
    }
    for hints in (get_type_hints(BrokerSettings), get_type_hints(TopicConfig)):
        for attribute, hint in hints.items():
            name = attribute.replace("_", ".")
            setting = {**definitions.UNLISTED, **definitions.BROKER, **definitions.TOPIC}.get(name)
            if setting is not None and name not in derived:
                assert hint in kinds[setting.type], name
                assert (hint == str | None) == (setting.default is None), name
    with pytest.raises(AttributeError):
        settings.num_partitions = 5  # type: ignore[misc]  # the point of the test


def test_honoured_is_what_is_read() -> None:
    attributes = {name.replace("_", ".") for name in get_type_hints(BrokerSettings)}
    of_topics = {name.replace("_", ".") for name in get_type_hints(TopicConfig)}
    honoured_by_topics = {
        name for name, row in definitions.TOPIC.items() if row.effect is Effect.ACTS
    }
    assert honoured_by_topics == of_topics - {"preallocate"} | {"internal.segment.bytes"}
    through_topics = {
        synonym for name in honoured_by_topics for synonym in TOPIC_SYNONYMS.get(name, ())
    }
    known = {**definitions.UNLISTED, **definitions.BROKER}
    honoured = {name for name, row in known.items() if row.effect is Effect.ACTS}
    assert honoured == (attributes & known.keys()) | through_topics | READ_IN_ANOTHER_SHAPE


def test_every_setting_that_is_read_is_used() -> None:
    """Or the page of settings would promise what nothing keeps."""
    package = Path(headrace.__file__).parent
    sources = "".join(
        path.read_text()
        for path in package.rglob("*.py")
        if path.parts[-2:] != ("settings", "broker_settings.py")
    )
    used = set(re.findall(r"\.(\w+)", sources))
    assert {name for name in get_type_hints(BrokerSettings) if name not in used} == USED_AT_HOME
