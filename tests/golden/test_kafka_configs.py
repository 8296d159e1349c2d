"""Our config answers against those recorded from Apache Kafka 4.3 (`kafka_configs.json`).

Every row of DescribeConfigs and every answer to a config change must be the same, apart from the
differences that are listed here with their reasons.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace.settings import describe
from headrace.settings.alter import AlterOutcome, validate_incremental, validate_replacement
from headrace.settings.alteration import Alteration
from headrace.settings.definitions.setting import Effect
from headrace.settings.describe import ConfigEntry
from headrace.settings.resolution import (
    LISTENER_PREFIX,
    ConfigLayers,
    broker_setting,
    with_both_ids,
)
from headrace.settings.resource import Resource, ResourceType

RECORDED = json.loads(Path(__file__).with_name("kafka_configs.json").read_text())
PLAIN, RICH = RECORDED["plain"], RECORDED["rich"]

# Broker settings whose row differs, and why.
BROKER_DIFFERENCES = {
    "listeners": "Headrace listens on loopback by default",
    "log.dir": "the default directory is given by the command",
    "node.id": "has a default in Headrace",
    "process.roles": "has a default in Headrace",
    "controller.listener.names": "has a default in Headrace",
    "zookeeper.connect": "Headrace knows it, so it is shown",
}
# Kafka refuses some values of these for reasons of its threads and Java plug-ins.
CHANGED_FREELY = {
    "background.threads",
    "cordoned.log.dirs",
    "log.cleaner.threads",
    "log.local.retention.ms",
    "metric.reporters",
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
}


class Row(NamedTuple):
    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    type: int
    synonyms: tuple[tuple[str, str | None, int], ...]


def recorded(rows: Iterable[list[object]]) -> dict[str, Row]:
    result = {}
    for name, value, source, read_only, sensitive, type_, synonyms in rows:
        assert isinstance(synonyms, list)
        row = Row._make(
            (name, value, source, read_only, sensitive, type_, tuple(map(tuple, synonyms)))
        )
        result[row.name] = row
    return result


def ours(entries: Iterable[ConfigEntry]) -> dict[str, Row]:
    return {
        entry.name: Row._make((*entry[:6], tuple(map(tuple, entry.synonyms)))) for entry in entries
    }


def plain_layers() -> ConfigLayers:
    return ConfigLayers(static=with_both_ids(PLAIN["static"]), default_log_dir="/tmp/kafka-logs")


def rich_layers() -> ConfigLayers:
    return ConfigLayers(
        static=with_both_ids(RICH["static"]),
        dynamic_default=RICH["dynamic_default"],
        dynamic_broker=RICH["dynamic_broker"],
        default_log_dir="/tmp/kafka-logs",
    )


def startable(layers: ConfigLayers) -> ConfigLayers:
    """The same without what stops a start of Headrace."""

    def kept(texts: Mapping[str, str]) -> dict[str, str]:
        return {
            name: text
            for name, text in texts.items()
            if not name.startswith(LISTENER_PREFIX)
            and ((row := broker_setting(name)) is None or row.effect is not Effect.REFUSED)
        }

    return ConfigLayers(
        static=kept(layers.static),
        dynamic_default=kept(layers.dynamic_default),
        dynamic_broker=kept(layers.dynamic_broker),
        default_log_dir=layers.default_log_dir,
    )


def startable_names(configs: list[list[object]]) -> list[str]:
    names = dict.fromkeys((str(name) for name, *_ in configs), "")
    return list(startable(ConfigLayers(static=names)).static)


def without_differences(rows: dict[str, Row]) -> dict[str, Row]:
    return {name: row for name, row in rows.items() if name not in BROKER_DIFFERENCES}


def test_a_topic_without_configs() -> None:
    assert ours(describe.describe_topic({}, plain_layers())) == recorded(PLAIN["topic"])


def test_a_topic_under_every_layer() -> None:
    described = describe.describe_topic(RICH["topic_overrides"], rich_layers())
    assert ours(described) == recorded(RICH["topic"])


def test_a_broker() -> None:
    described = ours(describe.describe_broker(plain_layers()))
    own = {name: row for name, row in described.items() if name.startswith("headrace.")}
    assert own
    assert without_differences(
        {name: row for name, row in described.items() if name not in own}
    ) == without_differences(recorded(PLAIN["broker"]))


def test_the_listed_differences_are_differences() -> None:
    plain = ours(describe.describe_broker(plain_layers()))
    rich = ours(describe.describe_broker(rich_layers()))
    theirs = recorded([*PLAIN["broker"], *RICH["broker_unlike_plain"]])
    same = [
        name
        for name in BROKER_DIFFERENCES
        if theirs[name] in (plain.get(name), rich.get(name)) and name != "log.dir"
    ]
    assert same == []


def test_a_broker_under_every_layer() -> None:
    described = ours(describe.describe_broker(rich_layers()))
    theirs = recorded([*PLAIN["broker"], *RICH["broker_unlike_plain"]])
    kafkas = {name: row for name, row in described.items() if not name.startswith("headrace.")}
    assert without_differences(kafkas) == without_differences(theirs)


def test_the_clusters_dynamic_defaults() -> None:
    described = describe.describe_broker_default(rich_layers())
    assert ours(described) == recorded(RICH["broker_default"])
    assert describe.describe_broker_default(plain_layers()) == []


def test_a_group() -> None:
    assert ours(describe.describe_group({}, plain_layers())) == recorded(PLAIN["group"])
    described = describe.describe_group(RICH["group_overrides"], rich_layers())
    assert ours(described) == recorded(RICH["group"])


def test_a_client_metrics_subscription() -> None:
    assert ours(describe.describe_client_metrics({})) == recorded(PLAIN["client_metrics"])
    described = describe.describe_client_metrics(RICH["client_metrics_overrides"])
    assert ours(described) == recorded(RICH["client_metrics"])


def test_the_configs_of_a_created_topic() -> None:
    layers = ConfigLayers(static=with_both_ids(RICH["static"]))
    described = describe.describe_created_topic(RICH["topic_overrides"], layers)
    assert [[entry.name, entry.value, entry.source] for entry in described] == RICH["created_topic"]


def changed(kind: str, resource: Resource, configs: list[list[object]]) -> AlterOutcome:
    layers = startable(rich_layers())
    if kind == "legacy":
        pairs = [(str(name), None if value is None else str(value)) for name, value in configs]
        return validate_replacement(resource, pairs, layers)
    current: Mapping[str, str] = {
        Resource(ResourceType.TOPIC, "rich"): RICH["topic_overrides"],
        Resource(ResourceType.GROUP, "g"): RICH["group_overrides"],
        Resource(ResourceType.CLIENT_METRICS, "m"): RICH["client_metrics_overrides"],
        Resource(ResourceType.BROKER, "1"): layers.dynamic_broker,
        Resource(ResourceType.BROKER, ""): layers.dynamic_default,
    }.get(resource, {})
    alterations = [Alteration._make(config) for config in configs]
    return validate_incremental(resource, alterations, current, layers)


@pytest.mark.parametrize(
    ("kind", "type_", "name", "configs", "answer"),
    RECORDED["alters"],
    ids=[json.dumps(case[:4])[:80] for case in RECORDED["alters"]],
)
def test_a_change_is_answered_as_kafka_does(
    kind: str, type_: int, name: str, configs: list[list[object]], answer: tuple[int, str | None]
) -> None:
    outcome = changed(kind, Resource(type_, name), configs)
    error_code, message = answer
    if type_ == ResourceType.BROKER and len(configs) > len(startable_names(configs)):
        assert outcome.refusal is not None
        return  # Kafka can do what these ask for.
    freely = type_ == ResourceType.BROKER and {config[0] for config in configs} <= CHANGED_FREELY
    if error_code == 0 or (freely and outcome.refusal is None):
        assert outcome.refusal is None
        return
    assert outcome.refusal is not None
    assert outcome.refusal.error_code == error_code
    if configs[0][0] == "max.connections.per.ip.overrides":
        return  # Kafka lets Java's own sentence through, which names neither setting nor entry.
    if configs[0][0] == "listeners":
        return  # Kafka complains that its controller's listener is gone.
    assert message is not None
    # Ours may add the nearest known name; Scala's `require` adds two words that mean nothing.
    assert outcome.refusal.text.partition("; nearest")[0] == message.removeprefix(
        "requirement failed: "
    )
