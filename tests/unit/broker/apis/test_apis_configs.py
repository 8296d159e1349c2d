"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources, and the rules the controller asks for."""

import logging

import pytest

from headrace.broker.apis import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.config_rules import SettingRules
from headrace.broker.requests import array_answer
from headrace.controller.changes import ConfigChanged
from headrace.controller.values import ConfigKind
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.wire.messages import alter_configs as replacing
from headrace.wire.messages import incremental_alter_configs as incremental
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.unit.broker.apis.one_broker import OneBroker, on_broker

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2


async def describe(
    broker: OneBroker, *resources: tuple[int, str], keys: list[str] | None = None, version: int = 4
) -> list[DescribeConfigsResult]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name in resources
        ],
        include_synonyms=True,
    )
    return list((await broker.ask(describe_configs, request, version)).results)


async def value(broker: OneBroker, kind: int, name: str, key: str) -> tuple[str | None, int]:
    (result,) = await describe(broker, (kind, name), keys=[key])
    (config,) = result.configs
    return config.value, config.config_source


@on_broker()
async def test_configs_of_a_topic(broker: OneBroker) -> None:
    await broker.topic("a", retention_ms="5")
    for version in range(1, 5):
        (result,) = await describe(broker, (TOPIC, "a"), keys=["retention.ms"], version=version)
        assert (result.error_code, result.error_message) == (0, "")
        (config,) = result.configs
        assert (config.name, config.value, config.config_source) == ("retention.ms", "5", 1)
        assert config.synonyms[0].name == "retention.ms"
        assert config.config_type == (5 if version >= 3 else 0)
    (every,) = await describe(broker, (TOPIC, "a"), keys=[])
    assert len(every.configs) == 33


@on_broker()
async def test_resources_that_cannot_be_described(broker: OneBroker) -> None:
    results = await describe(
        broker, (TOPIC, "zz"), (TOPIC, "a b"), (BROKER, "7"), (GROUP, ""), (METRICS, "")
    )
    assert [result.error_code for result in results] == [3, 17, 42, 42, 42]
    assert all(not result.configs for result in results)


@on_broker()
async def test_an_unknown_type_spoils_the_request(broker: OneBroker) -> None:
    results = await describe(broker, (BROKER, "1"), (3, "x"))
    assert [(result.error_code, result.resource_name) for result in results] == [
        (42, "1"),
        (42, "x"),
    ]


@on_broker()
async def test_every_other_kind_is_described(broker: OneBroker) -> None:
    results = await describe(
        broker, (BROKER, "1"), (BROKER, ""), (LOGGER, "1"), (METRICS, "m"), (GROUP, "g")
    )
    assert [result.error_code for result in results] == [0] * 5
    counts = [len(result.configs) for result in results]
    assert counts[0] > 200
    assert counts[2] > 10
    assert [counts[1], *counts[3:]] == [0, 3, 17]


def test_what_makes_an_answer_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_answer, "MAX_ITEM_BYTES", 100_000)

    @on_broker()
    async def story(broker: OneBroker) -> None:
        results = await describe(broker, *[(BROKER, "1")] * 50)
        codes = [result.error_code for result in results]
        assert codes == sorted(codes)
        assert codes.count(0) < 10
        assert (codes[0], codes[-1]) == (0, 42)
        assert "Ask for less" in (results[-1].error_message or "")

    story()


# ---- changing


Edit = tuple[str, int, str | None]


async def change(
    broker: OneBroker, *resources: tuple[int, str, list[Edit]], validate_only: bool = False
) -> list[tuple[int, str | None]]:
    request = incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental.AlterableConfig(name=key, config_operation=operation, value=text)
                    for key, operation, text in edits
                ],
            )
            for kind, name, edits in resources
        ],
        validate_only=validate_only,
    )
    response = await broker.ask(incremental_alter_configs, request, 1)
    assert [(r.resource_type, r.resource_name) for r in response.responses] == list(
        dict.fromkeys((kind, name) for kind, name, _ in resources)
    )
    return [(result.error_code, result.error_message) for result in response.responses]


@on_broker()
async def test_single_configs_are_set_appended_and_deleted(broker: OneBroker) -> None:
    await broker.topic("a")
    assert await change(
        broker, (TOPIC, "a", [("retention.ms", SET, "7"), ("cleanup.policy", APPEND, "compact")])
    ) == [(0, None)]
    assert await value(broker, TOPIC, "a", "retention.ms") == ("7", 1)
    assert await value(broker, TOPIC, "a", "cleanup.policy") == ("delete,compact", 1)
    partition = broker.partitions.get("a", 0)
    assert partition is not None
    assert partition.log.config.retention_ms == 7
    assert await change(broker, (TOPIC, "a", [("retention.ms", DELETE, None)])) == [(0, None)]
    assert partition.log.config.retention_ms == 7 * 24 * 3600 * 1000


@on_broker()
async def test_validating_changes_nothing(broker: OneBroker) -> None:
    await broker.topic("a")
    seven: list[Edit] = [("retention.ms", SET, "7")]
    assert await change(broker, (TOPIC, "a", seven), validate_only=True) == [(0, None)]
    assert (await value(broker, TOPIC, "a", "retention.ms"))[1] == 5


@on_broker()
async def test_each_resource_is_refused_for_itself(broker: OneBroker) -> None:
    await broker.topic("a")
    seven: list[Edit] = [("retention.ms", SET, "7")]
    answers = await change(
        broker,
        (TOPIC, "zz", seven),
        (TOPIC, "", seven),
        (TOPIC, "a b", seven),
        (BROKER, "5", []),
        (BROKER, "1", [("node.id", SET, "1")]),
        (LOGGER, "1", [("x", SET, "INFO")]),
        (3, "1", []),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "1")]),
        (METRICS, "m", [("interval.ms", SET, "1")]),
        (TOPIC, "a", [("retention.ms", APPEND, "7")]),
    )
    assert answers[:6] == [
        (3, "The topic 'zz' does not exist."),
        (42, "Default topic resources are not allowed."),
        (
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'",
        ),
        (42, "Unexpected broker id, expected 1, but received 5"),
        (42, "Cannot update these configs dynamically: [node.id]"),
        (40, "Logger x does not exist!"),
    ]
    assert [error for error, _ in answers[6:]] == [42, 40, 42, 40]
    assert await change(broker, (LOGGER, "1", [])) == [(0, None)]


@on_broker()
async def test_a_resource_that_comes_twice_is_refused(broker: OneBroker) -> None:
    await broker.topic("a")
    seven: list[Edit] = [("retention.ms", SET, "7")]
    (answer,) = await change(broker, (TOPIC, "a", seven), (TOPIC, "a", seven))
    assert answer == (42, "Each resource must appear at most once.")
    assert (await value(broker, TOPIC, "a", "retention.ms"))[1] == 5


@on_broker()
async def test_unknown_operations_duplicates_and_nulls(broker: OneBroker) -> None:
    await broker.topic("a")
    refused: list[tuple[list[Edit], int]] = [
        ([("retention.ms", 7, "7")], 42),
        ([("retention.ms", SET, "7"), ("retention.ms", SET, "8")], 42),
        ([("retention.ms", SET, None)], 42),
        ([("nonsense", SET, "7")], 40),
    ]
    for edits, error in refused:
        (answer,) = await change(broker, (TOPIC, "a", edits))
        assert answer[0] == error
        assert answer[1]


@on_broker()
async def test_settings_of_the_broker_change_while_it_runs(broker: OneBroker) -> None:
    await change(broker, (BROKER, "", [("log.retention.ms", SET, "1000")]))
    assert await value(broker, BROKER, "1", "log.retention.ms") == ("1000", 3)
    await change(broker, (BROKER, "1", [("log.retention.ms", SET, "2000")]))
    assert await value(broker, BROKER, "1", "log.retention.ms") == ("2000", 2)
    await broker.topic("a")
    assert (await value(broker, TOPIC, "a", "retention.ms"))[0] == "2000"


@on_broker()
async def test_the_older_api_replaces_everything(broker: OneBroker) -> None:
    await broker.topic("a", retention_ms="5", segment_ms="9")
    request = replacing.AlterConfigsRequest(
        resources=[
            replacing.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[replacing.AlterableConfig(name=key, value=text) for key, text in configs],
            )
            for kind, name, configs in (
                (TOPIC, "a", [("retention.ms", "6")]),
                (TOPIC, "zz", []),
                (LOGGER, "1", []),
                (GROUP, "g", [("consumer.session.timeout.ms", "50000")]),
                (METRICS, "m", [("interval.ms", None)]),
            )
        ]
    )
    for version in range(3):
        response = await broker.ask(alter_configs, request, version)
        assert [result.error_code for result in response.responses] == [0, 3, 42, 0, 42]
    assert await value(broker, TOPIC, "a", "retention.ms") == ("6", 1)
    assert (await value(broker, TOPIC, "a", "segment.ms"))[1] == 5
    assert await value(broker, GROUP, "g", "consumer.session.timeout.ms") == ("50000", 8)


@on_broker()
async def test_who_is_not_the_controller_says_so(broker: OneBroker) -> None:
    await broker.topic("a")
    broker.controller._resign()
    ((error, message),) = await change(broker, (TOPIC, "a", [("retention.ms", SET, "7")]))
    assert error == 41
    assert message


# ---- listing


@on_broker()
async def test_what_has_configs_is_listed(broker: OneBroker) -> None:
    await broker.topic("a")
    await change(
        broker,
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
        (METRICS, "m", [("interval.ms", SET, "1000")]),
    )

    async def listed(version: int, *types: int) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(types))
        response = await broker.ask(list_config_resources, request, version)
        assert response.error_code == 0
        return [(one.resource_type, one.resource_name) for one in response.config_resources]

    assert await listed(0) == [(METRICS, "m")]
    assert await listed(1) == [
        (GROUP, "g"),
        (METRICS, "m"),
        (LOGGER, "1"),
        (BROKER, "1"),
        (TOPIC, "a"),
    ]
    assert await listed(1, TOPIC, GROUP, TOPIC) == [(GROUP, "g"), (TOPIC, "a")]
    request = ListConfigResourcesRequest(resource_types=[3])
    assert (await broker.ask(list_config_resources, request, 1)).error_code == 35


# ---- what the controller asks


def rules(**configs: dict[str, str]) -> SettingRules:
    """With dynamic configs by broker: `default`, `broker_2`."""
    cluster = ClusterView(1, "a-cluster", tells_dialled_address=False)
    for name, values in configs.items():
        broker = "" if name == "default" else name.removeprefix("broker_")
        cluster.state.apply(ConfigChanged(ConfigKind.BROKER, broker, values))
    return SettingRules(LiveSettings(BrokerSettings.from_properties({"node.id": "1"})), cluster)


def test_values_are_judged_for_every_kind() -> None:
    check = rules().check
    assert check(ConfigKind.TOPIC, "a", {"retention.ms": "7"}) is None
    assert check(ConfigKind.TOPIC, "a", {"retention.ms": "x"}) == (
        "Invalid value x for configuration retention.ms: Not a number of type LONG"
    )
    assert check(ConfigKind.BROKER, "", {"log.cleaner.threads": "2"}) is None
    # The controller may sit on another broker than the one whose configs change.
    assert check(ConfigKind.BROKER, "9", {"log.cleaner.threads": "2"}) is None
    assert check(ConfigKind.BROKER, "9", {"node.id": "2"})
    assert check(ConfigKind.GROUP, "g", {"nonsense": "2"})
    assert check(ConfigKind.CLIENT_METRICS, "m", {"interval.ms": "2"})


NO_CONNECTIONS = {"max.connections.per.ip": "0"}
EXCEPT_ONE = {"max.connections.per.ip.overrides": "127.0.0.1:100"}


def test_a_default_that_breaks_a_rule_on_one_broker_is_refused() -> None:
    asked = rules(default=EXCEPT_ONE, broker_2=NO_CONNECTIONS)
    fault = asked.check(ConfigKind.BROKER, "", {})
    assert fault is not None
    assert fault.endswith("property is set. (on broker 2)")
    assert asked.check(ConfigKind.BROKER, "", {**EXCEPT_ONE, "max.connections": "9"}) is None
    small_buffer = {"log.cleaner.dedupe.buffer.size": "52428800"}
    many_threads = {"log.cleaner.threads": "100"}
    assert rules(broker_2=many_threads).check(ConfigKind.BROKER, "", small_buffer)
    assert rules(broker_2={}).check(ConfigKind.BROKER, "", small_buffer) is None


def test_a_brokers_config_is_judged_with_the_clusters_defaults() -> None:
    assert rules().check(ConfigKind.BROKER, "2", NO_CONNECTIONS)
    assert rules(default=EXCEPT_ONE).check(ConfigKind.BROKER, "2", NO_CONNECTIONS) is None


def test_what_is_wrong_already_does_not_forbid_other_changes() -> None:
    asked = rules(broker_2=NO_CONNECTIONS)
    assert asked.check(ConfigKind.BROKER, "", {"max.connections": "9"}) is None
    assert asked.check(ConfigKind.BROKER, "", {"max.connections": "many"})


def test_lists_and_defaults() -> None:
    asked = rules()
    assert asked.is_list(ConfigKind.TOPIC, "cleanup.policy")
    assert not asked.is_list(ConfigKind.TOPIC, "retention.ms")
    assert not asked.is_list(ConfigKind.TOPIC, "nonsense")
    assert asked.is_list(ConfigKind.BROKER, "log.cleanup.policy")
    assert not asked.is_list(ConfigKind.CLIENT_METRICS, "metrics")
    assert asked.default(ConfigKind.TOPIC, "cleanup.policy") == "delete"
    assert asked.default(ConfigKind.TOPIC, "nonsense") is None
    assert asked.default(ConfigKind.BROKER, "log.cleanup.policy") == "delete"
    assert asked.default(ConfigKind.GROUP, "share.auto.offset.reset") == "latest"


@on_broker()
async def test_the_levels_of_loggers_are_shown_and_set(broker: OneBroker) -> None:
    name = "headrace.broker.test_api_configs"
    logger = logging.getLogger(name)
    for operation, text, level in (
        (SET, "DEBUG", logging.DEBUG),
        (SET, "FATAL", logging.CRITICAL),
        (DELETE, None, logging.NOTSET),
    ):
        edit: Edit = (name, operation, text)
        before = logger.level
        assert await change(broker, (LOGGER, "1", [edit]), validate_only=True) == [(0, None)]
        assert logger.level == before
        assert await change(broker, (LOGGER, "1", [edit])) == [(0, None)]
        assert logger.level == level
        shown, source = await value(broker, LOGGER, "1", name)
        assert source == 6
        assert text is None or shown == text
    (every,) = await describe(broker, (LOGGER, "1"))
    assert {"root", "headrace", "headrace.broker", name} <= {each.name for each in every.configs}
    for broker_id, logger_name, error in (("1", "nobody", 40), ("7", name, 42)):
        edit = (logger_name, SET, "DEBUG")
        ((code, _),) = await change(broker, (LOGGER, broker_id, [edit]))
        assert code == error
    assert logger.level == logging.NOTSET
