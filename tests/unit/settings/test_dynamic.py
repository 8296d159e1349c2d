"""A dynamic config that breaks a rule on this broker keeps its last good value there; everything else follows."""

import logging

import pytest

from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.dynamic import apply_dynamic, readable_topic_config
from headrace.settings.live_settings import LiveSettings

OVERRIDES = "max.connections.per.ip.overrides"


def settings(**properties: str) -> BrokerSettings:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerSettings.from_properties({"node.id": "2", **named})


def test_good_values_are_all_in_force() -> None:
    applied = apply_dynamic(
        settings(), default={"max.connections": "7"}, broker={"log.cleaner.threads": "2"}
    )
    assert applied.settings.max_connections == 7
    assert applied.rejected == ()


def test_a_running_broker_keeps_the_last_good_value() -> None:
    own = {"max.connections.per.ip": "0"}
    before, _ = apply_dynamic(settings(), default={OVERRIDES: "127.0.0.1:100"}, broker=own)
    after, rejected = apply_dynamic(before, default={"max.connections": "9"}, broker=own)
    assert after.max_connections_per_ip == 0
    assert after.max_connections_per_ip_overrides == {"127.0.0.1": 100}
    assert after.max_connections == 9, "what is good is in force"
    (sentence,) = rejected
    assert sentence.startswith(
        f"the removal of {OVERRIDES} (the cluster's default) is not in force"
    )


def test_a_broker_that_starts_leaves_out_what_breaks_a_rule() -> None:
    after, rejected = apply_dynamic(
        settings(),
        default={"log.cleaner.dedupe.buffer.size": "52428800"},
        broker={"log.cleaner.threads": "100", "max.connections": "9"},
    )
    assert after.log_cleaner_dedupe_buffer_size == 52428800
    assert after.layers.values["log.cleaner.threads"] == 1
    assert after.max_connections == 9
    assert [each.partition(" ")[0] for each in rejected] == ["log.cleaner.threads=100"]


def test_values_that_need_each_other_are_taken_in_whatever_their_order() -> None:
    after, rejected = apply_dynamic(
        settings(),
        default={},
        broker={
            "max.connections.per.ip": "0",
            OVERRIDES: "127.0.0.1:100",
            "log.cleaner.threads": "1000",
        },
    )
    assert after.max_connections_per_ip == 0
    assert len(rejected) == 1


def test_a_malformed_value_costs_itself_only() -> None:
    after, rejected = apply_dynamic(
        settings(), default={"max.connections": "many", "log.cleaner.threads": "2"}, broker={}
    )
    assert after.layers.values["log.cleaner.threads"] == 2
    assert len(rejected) == 1


def test_it_is_said_once_and_no_longer_true_once_mended(caplog: pytest.LogCaptureFixture) -> None:
    live = LiveSettings(settings())
    with caplog.at_level(logging.ERROR):
        for number in ("1", "2"):
            own = {"max.connections.per.ip": "0", "max.connections": number}
            live.apply_dynamic(default={}, broker=own)
            assert live.current.max_connections == int(number)
    assert len(live.rejected) == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"{live.rejected[0]}; change or delete that config"
    ]
    live.apply_dynamic(default={}, broker={})
    assert not live.rejected


def test_a_topics_config_that_cannot_be_read_costs_itself_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody checks what is written into the store by hand, or by a later version."""
    overrides = {"retention.ms": "soon", "max.message.bytes": "77"}
    config = readable_topic_config(settings(), overrides)
    assert config.max_message_bytes == 77
    assert config.retention_ms == settings().topic_defaults.retention_ms
    assert "retention.ms" in caplog.text
