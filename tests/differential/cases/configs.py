"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from headrace.wire.messages import alter_configs, incremental_alter_configs
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.differential.plain import Plain
from tests.differential.requests import versions
from tests.differential.script import Script

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
BROKER_CONFIGS = [
    *("num.partitions", "log.retention.hours", "log.retention.ms", "log.segment.bytes"),
    *(
        "message.max.bytes",
        "auto.create.topics.enable",
        "min.insync.replicas",
        "log.cleanup.policy",
    ),
    *("compression.type", "offsets.topic.num.partitions", "group.initial.rebalance.delay.ms"),
    *("log.flush.interval.messages", "unclean.leader.election.enable", "delete.topic.enable"),
    *("log.retention.bytes", "log.message.timestamp.type", "connections.max.idle.ms"),
    *("socket.request.max.bytes", "offsets.retention.minutes", "group.max.session.timeout.ms"),
]


def _resource(kind: int, name: str, keys: list[str] | None = None) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)


def _describe(script: Script, version: int, *resources: DescribeConfigsResource) -> None:
    request = DescribeConfigsRequest(
        resources=resources, include_synonyms=True, include_documentation=True
    )
    script.ask(request, version)


def topic_configs_are_described_in_every_version(script: Script) -> None:
    topic = script.topic("a", configs={"retention.ms": "1234", "cleanup.policy": "compact"})
    for version in versions(DescribeConfigsRequest):
        _describe(script, version, _resource(TOPIC, topic))
        _describe(script, version, _resource(TOPIC, topic, ["retention.ms", "no.such.config"]))
        _describe(script, version, _resource(TOPIC, topic, []))
        plain = DescribeConfigsRequest(resources=[_resource(TOPIC, topic, ["retention.ms"])])
        script.ask(plain, version)


def broker_configs_are_described(script: Script) -> None:
    for version in versions(DescribeConfigsRequest):
        _describe(script, version, _resource(BROKER, "1", BROKER_CONFIGS))
        _describe(script, version, _resource(BROKER, "", ["num.partitions"]))


def the_wrong_resource_is_refused(script: Script) -> None:
    for version in (1, 4):
        _describe(script, version, _resource(TOPIC, script.name("missing")))
        _describe(script, version, _resource(TOPIC, "not/a/name"))
        _describe(script, version, _resource(TOPIC, ""))
        _describe(script, version, _resource(BROKER, "99", ["num.partitions"]))
        _describe(script, version, _resource(BROKER, "one", ["num.partitions"]))
        _describe(script, version, _resource(77, "x"))


def _incremental(
    script: Script,
    version: int,
    name: str,
    *changes: tuple[str, int, str | None],
    kind: int = TOPIC,
    validate_only: bool = False,
) -> None:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )
    script.ask(request, version)


def _settled(script: Script, topic: str, key: str, value: str) -> None:
    """Kafka's brokers hear of a change a moment after it was answered."""
    request = DescribeConfigsRequest(resources=[_resource(TOPIC, topic, [key])])
    script.wait_for(request, 4, lambda answer: answer.results[0].configs[0].value == value)
    _describe(script, 4, _resource(TOPIC, topic, [key]))


def topic_configs_are_changed_one_by_one(script: Script) -> None:
    for version in (0, 1):
        topic = script.topic(f"v{version}")
        _incremental(script, version, topic, ("retention.ms", SET, "99"), validate_only=True)
        _incremental(script, version, topic, ("retention.ms", SET, "5000"))
        _settled(script, topic, "retention.ms", "5000")
        _incremental(script, version, topic, ("cleanup.policy", APPEND, "compact"))
        _settled(script, topic, "cleanup.policy", "delete,compact")
        _incremental(script, version, topic, ("cleanup.policy", SUBTRACT, "delete"))
        _settled(script, topic, "cleanup.policy", "compact")
        _incremental(script, version, topic, ("retention.ms", DELETE, None))
        _settled(script, topic, "retention.ms", "604800000")


def bad_changes_are_refused(script: Script) -> None:
    topic = script.topic("a")
    for change in (
        ("no.such.config", SET, "1"),
        ("retention.ms", SET, "soon"),
        ("retention.ms", SET, None),
        ("retention.ms", APPEND, "1"),
        ("cleanup.policy", SET, "burn"),
        ("cleanup.policy", SUBTRACT, "compact"),
        ("segment.bytes", SET, "1"),
        ("min.insync.replicas", SET, "0"),
    ):
        _incremental(script, 1, topic, change)
    _incremental(script, 1, topic, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    _incremental(script, 1, script.name("missing"), ("retention.ms", SET, "1"))
    _incremental(script, 1, "x", ("retention.ms", SET, "1"), kind=77)
    _incremental(script, 1, "99", ("log.cleaner.threads", SET, "1"), kind=BROKER)
    _incremental(script, 1, "1", ("node.id", SET, "2"), kind=BROKER)


def unknown_operations_are_refused(script: Script) -> None:
    _incremental(script, 1, script.topic("a"), ("retention.ms", 9, "1"))


def all_topic_configs_are_replaced_at_once(script: Script) -> None:
    for version in versions(alter_configs.AlterConfigsRequest):
        topic = script.topic(f"v{version}", configs={"retention.ms": "1234"})
        for key, value in (
            ("max.message.bytes", "2000"),
            ("no.such.config", "1"),
            ("retention.ms", "soon"),
        ):
            configs = [alter_configs.AlterableConfig(name=key, value=value)]
            resource = alter_configs.AlterConfigsResource(
                resource_type=TOPIC, resource_name=topic, configs=configs
            )
            script.ask(alter_configs.AlterConfigsRequest(resources=[resource]), version)
        _settled(script, topic, "retention.ms", "604800000")
        _settled(script, topic, "max.message.bytes", "2000")


def config_resources_are_listed(script: Script) -> None:
    script.topic("listed")

    def mine(answer: Plain) -> object:
        found = answer.get("config_resources", [])
        kept = [one for one in found if one["resource_name"] in ("listed", "1", "")]
        return {"error_code": answer["error_code"], "config_resources": kept}

    for types in ([TOPIC], [BROKER], [BROKER_LOGGER], [77], []):
        script.ask(ListConfigResourcesRequest(resource_types=types), 1, pick=mine)
    script.ask(ListConfigResourcesRequest(), 0, pick=mine)
