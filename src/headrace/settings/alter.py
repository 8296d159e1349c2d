"""May these configs be changed like that? For AlterConfigs, IncrementalAlterConfigs, CreateTopics.

Refusals are values with Kafka's codes and words. Nothing is stored here: an outcome without error
carries the configs that the resource has from now on. Whether a topic exists and who may do this is
asked elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from headrace.errors import SettingError
from headrace.settings import definitions
from headrace.settings.alter_client_metrics import refuse_client_metrics
from headrace.settings.alter_groups import refuse_group
from headrace.settings.alter_loggers import refuse_loggers
from headrace.settings.alteration import Alteration, AlterOp
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.definitions.setting import Setting, Update
from headrace.settings.definitions.value_type import ValueType
from headrace.settings.resolution import (
    LISTENER_PREFIX,
    ConfigLayers,
    base_name,
    broker_setting,
    topic_default,
    topic_values,
)
from headrace.settings.resource import (
    Resource,
    ResourceType,
    invalid_config,
    invalid_request,
)
from headrace.settings.values import nearest_name, parse, text_of, unknown_name
from headrace.wire.refusal import Refusal

MAX_VALUE_BYTES = 32767
_MOST_WARNINGS = 20
# Kafka changes them while it runs.
_OPENED_AT_START = ("listeners", "listener.security.protocol.map")
_TLS_PER_LISTENER = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOutcome:
    """Either a refusal, or the resource's configs from now on."""

    refusal: Refusal | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def validate_incremental(
    resource: Resource,
    alterations: Sequence[Alteration],
    current: Mapping[str, str],
    layers: ConfigLayers,
) -> AlterOutcome:
    """IncrementalAlterConfigs on one resource whose own configs are `current`; those of a broker's loggers are their levels."""
    if resource.type == ResourceType.BROKER_LOGGER:
        refusal = (
            _refuse_broker_name(resource.name, layers)
            or _refuse_alterations(alterations)
            or refuse_loggers(alterations, current)
        )
        return AlterOutcome(refusal=refusal)
    refusal = _refuse_resource(resource, layers) or _refuse_alterations(alterations)
    if refusal is not None:
        return AlterOutcome(refusal=refusal)
    configs = dict(current)
    for alteration in alterations:
        refusal = _apply(resource, alteration, configs, layers)
        if refusal is not None:
            return AlterOutcome(refusal=refusal)
    return _validated(resource, configs, layers)


def validate_replacement(
    resource: Resource, configs: Sequence[tuple[str, str | None]], layers: ConfigLayers
) -> AlterOutcome:
    """AlterConfigs on one resource: these configs replace all that it has."""
    alterations = [Alteration(name, AlterOp.SET, value) for name, value in configs]
    refusal = _refuse_resource(resource, layers) or _refuse_alterations(alterations)
    if refusal is not None:
        return AlterOutcome(refusal=refusal)
    texts = {name: value for name, value in configs if value is not None}
    return _validated(resource, texts, layers)


def repeated(resources: Iterable[Resource]) -> dict[Resource, Refusal]:
    """Resources that come more than once in a request: each of them is refused."""
    counts: dict[Resource, int] = {}
    for resource in resources:
        counts[resource] = counts.get(resource, 0) + 1
    refusal = invalid_request("Each resource must appear at most once.")
    return {resource: refusal for resource, count in counts.items() if count > 1}


def _refuse_resource(resource: Resource, layers: ConfigLayers) -> Refusal | None:
    match resource.type:
        case ResourceType.TOPIC if not resource.name:
            return invalid_request("Default topic resources are not allowed.")
        case ResourceType.GROUP if not resource.name:
            return invalid_request("Default group resources are not allowed.")
        case ResourceType.CLIENT_METRICS if not resource.name:
            return invalid_request("Subscription name can't be empty")
        case ResourceType.BROKER if resource.name:
            return _refuse_broker_name(resource.name, layers)
        case (
            ResourceType.TOPIC
            | ResourceType.GROUP
            | ResourceType.CLIENT_METRICS
            | ResourceType.BROKER
        ):
            return None
        case _:
            return invalid_request(f"Unknown resource type {int(resource.type)}")


def _refuse_broker_name(name: str, layers: ConfigLayers) -> Refusal | None:
    node_id = layers.values["node.id"]
    try:
        number = int(name)
    except ValueError:
        return invalid_request(f"Node id must be an integer, but it is: {name}")
    if number != node_id:
        return invalid_request(f"Unexpected broker id, expected {node_id}, but received {name}")
    return None


def _refuse_alterations(alterations: Sequence[Alteration]) -> Refusal | None:
    names = [alteration.name for alteration in alterations]
    if len(set(names)) < len(names):
        return invalid_request("Error due to duplicate config keys")
    missing = [
        alteration.name
        for alteration in alterations
        if alteration.value is None and alteration.op != AlterOp.DELETE
    ]
    if missing:
        return invalid_request(f"Null value not supported for : {','.join(missing)}")
    return None


def _apply(
    resource: Resource, alteration: Alteration, configs: dict[str, str], layers: ConfigLayers
) -> Refusal | None:
    name, op, value = alteration
    if op == AlterOp.DELETE:
        configs.pop(name, None)
        return None
    assert value is not None
    if op in {AlterOp.APPEND, AlterOp.SUBTRACT}:
        setting = _setting(resource, name)
        if setting is None or setting.type is not ValueType.LIST:
            return _refuse_list_operation(resource, AlterOp(op), name, setting)
        value = _changed_list(AlterOp(op), value, configs.get(name), name, setting, layers)
    elif op != AlterOp.SET:
        return invalid_request(f"Unknown operations type {op}")
    if len(value.encode()) > MAX_VALUE_BYTES:
        return invalid_config(
            "The configuration value cannot be added because it exceeds the maximum value size "
            f"of {MAX_VALUE_BYTES} bytes."
        )
    configs[name] = value
    return None


def _setting(resource: Resource, name: str) -> Setting | None:
    match resource.type:
        case ResourceType.TOPIC:
            return definitions.TOPIC.get(name)
        case ResourceType.GROUP:
            return definitions.GROUP.get(name)
        case ResourceType.BROKER:
            return broker_setting(name)
        case _:
            # Kafka lets nobody append to the lists of a client-metrics subscription.
            return None


def _refuse_list_operation(
    resource: Resource, op: AlterOp, name: str, setting: Setting | None
) -> Refusal:
    if resource.type != ResourceType.BROKER:
        return invalid_config(f"Can't {op.name} to key {name} because its type is not LIST.")
    if setting is None:
        return invalid_config(f"Unknown config name: {name}")
    return invalid_config(f"Config value {op.name.lower()} is not allowed for config key: {name}")


def _changed_list(
    op: AlterOp,
    value: str,
    current: str | None,
    name: str,
    setting: Setting,
    layers: ConfigLayers,
) -> str:
    if current is None:
        in_topic = definitions.TOPIC.get(name) is setting
        default = topic_default(name, layers.values) if in_topic else layers.values.get(name)
        current = text_of(setting, default) or ""
    entries = [entry.strip() for entry in current.split(",") if entry.strip()]
    changes = [entry.strip() for entry in value.split(",")]
    if op is AlterOp.APPEND:
        entries += [entry for entry in changes if entry not in entries]
    else:
        entries = [entry for entry in entries if entry not in changes]
    return ",".join(entries)


def _validated(
    resource: Resource, configs: Mapping[str, str], layers: ConfigLayers
) -> AlterOutcome:
    warnings: tuple[str, ...] = ()
    match resource.type:
        case ResourceType.TOPIC:
            refusal = _refuse_topic(configs, layers)
        case ResourceType.BROKER:
            refusal = _refuse_broker(resource.name, configs, layers)
            unknown = (name for name in configs if broker_setting(name) is None)
            warnings = tuple(
                unknown_name(name, definitions.BROKER) for name in islice(unknown, _MOST_WARNINGS)
            )
        case ResourceType.GROUP:
            refusal = refuse_group(configs, layers)
        case _:
            refusal = refuse_client_metrics(configs)
    return AlterOutcome(refusal=refusal, configs={} if refusal else configs, warnings=warnings)


def _refuse_topic(configs: Mapping[str, str], layers: ConfigLayers) -> Refusal | None:
    for name in configs:
        if name not in definitions.TOPIC:
            nearest = nearest_name(name, definitions.TOPIC)
            hint = f"; nearest known name: {nearest}" if nearest else ""
            return invalid_config(f"Unknown topic config name: {name}{hint}")
    try:
        values = topic_values(configs, layers.values)
    except SettingError as error:
        return invalid_config(str(error))
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        return invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )
    if values["remote.storage.enable"]:
        return invalid_config(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return None


def _refuse_broker(
    broker_name: str, configs: Mapping[str, str], layers: ConfigLayers
) -> Refusal | None:
    known = {name: row for name in configs if (row := broker_setting(name)) is not None}
    static_only = [name for name, row in known.items() if row.update is Update.READ_ONLY]
    if static_only:
        return _about(static_only, "Cannot update these configs dynamically")
    tls = [name for name in configs if name in _TLS_PER_LISTENER]
    if tls:
        return _about(
            tls,
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix",
        )
    try:
        for name, row in known.items():
            parse(row, configs[name], base_name(name))
        if not broker_name:
            own = [name for name, row in known.items() if _only_per_broker(name, row)]
            if own:
                return _about(
                    own,
                    "Cannot update these configs at default cluster level, "
                    "broker id must be specified",
                )
        changed = (
            replace(layers, dynamic_broker=configs)
            if broker_name
            else replace(layers, dynamic_default=configs)
        )
        BrokerSettings(changed)
    except SettingError as error:
        return invalid_request(str(error))
    opened = [
        name
        for name in _OPENED_AT_START
        if name in configs and changed.values[name] != layers.values[name]
    ]
    if opened:
        return _about(
            opened,
            "Listeners are opened at the start of a broker: set these configs in its server.properties and restart it",
        )
    return None


def _only_per_broker(name: str, row: Setting) -> bool:
    return row.update is Update.PER_BROKER or name.startswith(LISTENER_PREFIX)


def _about(names: Iterable[str], sentence: str) -> Refusal:
    return invalid_request(f"{sentence}: [{', '.join(sorted(names))}]")
