import pytest

from headrace.settings.alter import (
    AlterOutcome,
    repeated,
    validate_incremental,
    validate_replacement,
)
from headrace.settings.alteration import Alteration, AlterOp
from headrace.settings.resolution import ConfigLayers
from headrace.settings.resource import Resource, ResourceType
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

LAYERS = ConfigLayers(static={"node.id": "1", "log.cleanup.policy": "compact"})
TOPIC = Resource(ResourceType.TOPIC, "orders")
BROKER = Resource(ResourceType.BROKER, "1")


def altered(
    resource: Resource, current: dict[str, str], *alterations: tuple[str, AlterOp, str | None]
) -> AlterOutcome:
    return validate_incremental(
        resource, [Alteration(*alteration) for alteration in alterations], current, LAYERS
    )


def test_a_change_yields_the_configs_from_now_on() -> None:
    outcome = altered(
        TOPIC,
        {"retention.ms": "5", "segment.ms": "6"},
        ("retention.ms", AlterOp.SET, "7"),
        ("segment.ms", AlterOp.DELETE, None),
        ("flush.ms", AlterOp.SET, "8"),
    )
    assert outcome.refusal is None
    assert outcome.configs == {"retention.ms": "7", "flush.ms": "8"}


def test_lists_grow_and_shrink_from_what_is_in_force() -> None:
    grown = altered(TOPIC, {}, ("cleanup.policy", AlterOp.APPEND, "delete,compact"))
    assert grown.configs == {"cleanup.policy": "compact,delete"}
    shrunk = altered(TOPIC, dict(grown.configs), ("cleanup.policy", AlterOp.SUBTRACT, "compact"))
    assert shrunk.configs == {"cleanup.policy": "delete"}
    on_broker = altered(BROKER, {}, ("log.cleanup.policy", AlterOp.APPEND, "delete"))
    assert on_broker.configs == {"log.cleanup.policy": "compact,delete"}


def test_a_refused_change_changes_nothing() -> None:
    outcome = altered(
        TOPIC,
        {"retention.ms": "5"},
        ("retention.ms", AlterOp.SET, "7"),
        ("segment.bytes", AlterOp.SET, "x"),
    )
    assert outcome.refusal is not None
    assert outcome.configs == {}


def test_an_unknown_config_comes_with_the_nearest_name() -> None:
    outcome = altered(TOPIC, {}, ("retention.m", AlterOp.SET, "7"))
    assert outcome.refusal == Refusal(
        ErrorCode.INVALID_CONFIG,
        "Unknown topic config name: retention.m; nearest known name: retention.ms",
    )


def test_an_unknown_broker_config_is_taken_with_a_warning() -> None:
    outcome = altered(BROKER, {}, ("log.retention.mz", AlterOp.SET, "7"))
    assert outcome.refusal is None
    assert outcome.warnings == (
        "log.retention.mz: unknown setting; nearest known name: log.retention.ms",
    )


def test_replacement_forgets_what_it_does_not_name() -> None:
    outcome = validate_replacement(TOPIC, [("retention.ms", "7")], LAYERS)
    assert outcome.configs == {"retention.ms": "7"}


def test_a_value_has_a_largest_size() -> None:
    outcome = altered(
        TOPIC, {}, ("leader.replication.throttled.replicas", AlterOp.SET, "0:1," * 9000)
    )
    assert outcome.refusal is not None
    assert "maximum value size of 32767 bytes" in outcome.refusal.text


def test_a_resource_may_come_once() -> None:
    assert repeated([TOPIC, BROKER, TOPIC]) == {
        TOPIC: Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    }
    assert repeated([TOPIC, BROKER]) == {}


def test_bounds_between_groups_and_their_heartbeats() -> None:
    outcome = validate_incremental(
        Resource(ResourceType.GROUP, "g"),
        [
            Alteration("consumer.session.timeout.ms", AlterOp.SET, "10"),
            Alteration("consumer.heartbeat.interval.ms", AlterOp.SET, "10"),
        ],
        {},
        ConfigLayers(
            static={
                "group.consumer.min.session.timeout.ms": "1",
                "group.consumer.min.heartbeat.interval.ms": "1",
            }
        ),
    )
    assert outcome.refusal == Refusal(
        ErrorCode.INVALID_CONFIG,
        "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms",
    )


@pytest.mark.parametrize(
    ("alteration", "refusal"),
    [
        (("headrace", AlterOp.SET, "DEBUG"), None),
        (("headrace", AlterOp.DELETE, None), None),
        (("root", AlterOp.SET, "WARN"), None),
        (
            ("kafka", AlterOp.SET, "DEBUG"),
            Refusal(ErrorCode.INVALID_CONFIG, "Logger kafka does not exist!"),
        ),
        (
            ("headrace", AlterOp.SET, "LOUD"),
            Refusal(
                ErrorCode.INVALID_CONFIG,
                "Cannot set the log level of headrace to LOUD as it is not a supported log level. "
                "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
            ),
        ),
        (
            ("headrace", AlterOp.APPEND, "INFO"),
            Refusal(
                ErrorCode.INVALID_REQUEST,
                "APPEND operation is not allowed for the BROKER_LOGGER resource",
            ),
        ),
        (
            ("root", AlterOp.DELETE, None),
            Refusal(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            ),
        ),
    ],
)
def test_levels_of_loggers(
    alteration: tuple[str, AlterOp, str | None], refusal: Refusal | None
) -> None:
    levels = {"root": "WARN", "headrace": "INFO"}
    outcome = altered(Resource(ResourceType.BROKER_LOGGER, "1"), levels, alteration)
    assert outcome.refusal == refusal


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listeners", "PLAINTEXT://127.0.0.1:9092,INSIDE://127.0.0.1:9093"),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"),
    ],
)
def test_listeners_are_not_changed_while_the_broker_runs(name: str, value: str) -> None:
    static = {
        "node.id": "1",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,X:SSL",
    }
    layers = ConfigLayers(static=static)
    outcome = validate_incremental(BROKER, [Alteration(name, AlterOp.SET, value)], {}, layers)
    assert outcome.refusal is not None
    assert outcome.refusal.error_code == ErrorCode.INVALID_REQUEST
    assert f"restart it: [{name}]" in (outcome.refusal.message or "")
    same = static.get(name, "PLAINTEXT://127.0.0.1:9092")
    outcome = validate_incremental(BROKER, [Alteration(name, AlterOp.SET, same)], {}, layers)
    assert outcome.refusal is None
