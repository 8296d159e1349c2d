"""What DescribeConfigs and CreateTopics say about configs: value, source, synonyms, type, text.

Pure functions over layers of texts; the answers are plain values for any version of the API.
Quirks of Kafka are kept on purpose: a topic config that follows `log.retention.hours` shows the
right value but the source DEFAULT and no synonyms, because only synonyms from the first of the
preferred name on are listed.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from headrace.settings import definitions
from headrace.settings.definitions.setting import Setting, Update
from headrace.settings.definitions.value_type import Value, ValueType, shown
from headrace.settings.resolution import (
    TOPIC_SYNONYMS,
    ConfigLayers,
    Source,
    broker_setting,
    in_milliseconds,
    synonyms_of,
    texts_in_force,
    topic_default,
)
from headrace.settings.resource import Resource, ResourceType, invalid_request
from headrace.settings.values import parse, text_of
from headrace.wire.refusal import Refusal


class ConfigSynonym(NamedTuple):
    """One more place that sets the same thing."""

    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    """One config in an answer. `is_default` is for old versions that know no source."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    type: ValueType
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is Source.DEFAULT


class ConfigQuery(NamedTuple):
    """What a DescribeConfigs request asks for; no keys means all."""

    keys: Collection[str] | None = None
    synonyms: bool = True
    documentation: bool = True

    def includes(self, name: str) -> bool:
        return not self.keys or name in self.keys


ALL = ConfigQuery()


def describe(
    resource: Resource,
    own: Mapping[str, str],
    layers: ConfigLayers,
    wanted: ConfigQuery = ALL,
) -> list[ConfigEntry] | Refusal:
    """One resource of a DescribeConfigs request; `own` is what is set for it and for it alone.

    Whether a topic exists is asked elsewhere.
    """
    refusal = _refuse_name(resource, layers.values["node.id"])
    if refusal is not None:
        return refusal
    match resource.type:
        case ResourceType.TOPIC:
            return describe_topic(own, layers, wanted)
        case ResourceType.BROKER if resource.name:
            return describe_broker(layers, wanted)
        case ResourceType.BROKER:
            return describe_broker_default(layers, wanted)
        case ResourceType.GROUP:
            return describe_group(own, layers, wanted)
        case ResourceType.CLIENT_METRICS:
            return describe_client_metrics(own, wanted)
        case ResourceType.BROKER_LOGGER:
            return describe_loggers(own, wanted)
        case _:
            return invalid_request(f"Unsupported resource type: {int(resource.type)}")


def _refuse_name(resource: Resource, node_id: Value) -> Refusal | None:
    match resource.type:
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            alternative = " or empty string," if resource.type == ResourceType.BROKER else ""
            if not resource.name:
                return None if alternative else invalid_request("Broker id must not be empty")
            try:
                number = int(resource.name)
            except ValueError:
                return invalid_request(f"Broker id must be an integer, but it is: {resource.name}")
            if number != node_id:
                return invalid_request(
                    f"Unexpected broker id, expected {node_id}{alternative} but received "
                    f"{resource.name}"
                )
        case ResourceType.GROUP if not resource.name:
            return invalid_request("Group name must not be empty")
        case ResourceType.CLIENT_METRICS if not resource.name:
            return invalid_request("Client metrics subscription name must not be empty")
    return None


def describe_topic(
    overrides: Mapping[str, str], layers: ConfigLayers, wanted: ConfigQuery = ALL
) -> list[ConfigEntry]:
    entries = []
    for setting, default, synonyms in _topic_defaults(layers):
        name = setting.name
        if not wanted.includes(name):
            continue
        if name in overrides:
            value = text_of(setting, parse(setting, overrides[name]))
            own = ConfigSynonym(name, value, Source.TOPIC)
            entries.append(_entry(setting, value, [own, *synonyms], wanted))
        else:
            entries.append(_entry(setting, default, synonyms, wanted))
    return entries


@lru_cache(maxsize=2)
def _topic_defaults(
    layers: ConfigLayers,
) -> list[tuple[Setting, str | None, list[ConfigSynonym]]]:
    """What every topic shares; a tool that describes all topics asks for it once a topic."""
    return [
        (
            setting,
            text_of(setting, topic_default(name, layers.values)),
            _broker_synonyms(TOPIC_SYNONYMS[name][0], layers) if name in TOPIC_SYNONYMS else [],
        )
        for name, setting in definitions.TOPIC.items()
        if not setting.hidden
    ]


def describe_broker(layers: ConfigLayers, wanted: ConfigQuery = ALL) -> list[ConfigEntry]:
    """The broker's settings in force, and whatever else was set for it."""
    values = layers.values
    entries = []
    for name, setting in definitions.BROKER.items():
        if not setting.hidden and wanted.includes(name):
            synonyms = _broker_synonyms(name, layers)
            read_only = setting.update is Update.READ_ONLY
            value = text_of(setting, values[name])
            entries.append(_entry(setting, value, synonyms, wanted, read_only=read_only))
    for name, text in texts_in_force(layers).items():
        known = definitions.BROKER.get(name)
        if wanted.includes(name) and (known is None or known.hidden):
            entries.append(_set_by_name(name, text, _broker_synonyms(name, layers), wanted))
    return entries


def describe_broker_default(layers: ConfigLayers, wanted: ConfigQuery = ALL) -> list[ConfigEntry]:
    """The dynamic defaults of the cluster: only those that are set."""
    return [
        _set_by_name(
            name,
            text,
            [ConfigSynonym(name, _visible(name, text), Source.DYNAMIC_DEFAULT_BROKER)],
            wanted,
        )
        for name, text in layers.dynamic_default.items()
        if wanted.includes(name)
    ]


def describe_group(
    overrides: Mapping[str, str], layers: ConfigLayers, wanted: ConfigQuery = ALL
) -> list[ConfigEntry]:
    broker = layers.values
    entries = []
    for name, setting in definitions.GROUP.items():
        if not wanted.includes(name):
            continue
        broker_name = f"group.{name}"
        if broker_name in definitions.BROKER:
            default = broker[broker_name]
            synonyms = _broker_synonyms(broker_name, layers)
        else:
            default = setting.default
            synonyms = [ConfigSynonym(name, text_of(setting, default), Source.DEFAULT)]
        entries.append(_overridden(setting, default, synonyms, overrides, Source.GROUP, wanted))
    return entries


def describe_client_metrics(
    overrides: Mapping[str, str], wanted: ConfigQuery = ALL
) -> list[ConfigEntry]:
    return [
        _overridden(setting, setting.default, [], overrides, Source.CLIENT_METRICS, wanted)
        for name, setting in definitions.CLIENT_METRICS.items()
        if wanted.includes(name)
    ]


def describe_loggers(levels: Mapping[str, str], wanted: ConfigQuery = ALL) -> list[ConfigEntry]:
    """A broker's loggers with their levels."""
    return [
        ConfigEntry(
            name,
            level,
            Source.DYNAMIC_BROKER_LOGGER,
            False,
            False,
            ValueType.UNKNOWN,
            (),
            "" if wanted.documentation else None,
        )
        for name, level in levels.items()
        if wanted.includes(name)
    ]


def describe_created_topic(overrides: Mapping[str, str], layers: ConfigLayers) -> list[ConfigEntry]:
    """The configs in a CreateTopics answer: texts as they were written, sources without the quirk."""
    entries = []
    for name, setting in sorted(definitions.TOPIC.items()):
        if not setting.hidden:
            value, source = _created(setting, overrides, layers)
            entries.append(
                ConfigEntry(name, value, source, False, setting.sensitive, setting.type, (), None)
            )
    return entries


def _created(
    setting: Setting, overrides: Mapping[str, str], layers: ConfigLayers
) -> tuple[str | None, Source]:
    if setting.name in overrides:
        return overrides[setting.name], Source.TOPIC
    for source, texts in layers.set_texts():
        for synonym in TOPIC_SYNONYMS.get(setting.name, ()):
            if synonym in texts:
                text = texts[synonym]
                if synonym.endswith((".hours", ".minutes")):
                    text = str(in_milliseconds(synonym, int(text)))
                return text, source
    return text_of(setting, setting.default), Source.DEFAULT


def _broker_synonyms(name: str, layers: ConfigLayers) -> list[ConfigSynonym]:
    """Everything that sets `name`, strongest first, beginning with the first under that very name."""
    found = list(_all_synonyms(synonyms_of(name), layers))
    for index, synonym in enumerate(found):
        if synonym.name == name:
            return found[index:]
    return []


def _all_synonyms(names: tuple[str, ...], layers: ConfigLayers) -> Iterator[ConfigSynonym]:
    for source, texts in layers.set_texts():
        for name in names:
            if name in texts:
                yield ConfigSynonym(name, _visible(name, texts[name]), source)
    for name in names:
        setting = definitions.BROKER.get(name)
        default = None if setting is None else layers.default_of(setting)
        if default is not None:
            yield ConfigSynonym(name, shown(default), Source.DEFAULT)


def _visible(name: str, text: str) -> str | None:
    """What nobody knows may be a secret, so it is not shown."""
    setting = broker_setting(name)
    return None if setting is None or setting.sensitive else text


def _set_by_name(
    name: str, text: str, synonyms: list[ConfigSynonym], wanted: ConfigQuery
) -> ConfigEntry:
    """An entry for something that is listed only because it is set."""
    setting = broker_setting(name)
    own_row = setting is not None and setting.name == name
    return ConfigEntry(
        name,
        _visible(name, text),
        synonyms[0].source if synonyms else Source.DEFAULT,
        not (own_row and setting is not None and setting.update is not Update.READ_ONLY),
        setting is None or setting.sensitive,
        ValueType.UNKNOWN if setting is None else setting.type,
        tuple(synonyms) if wanted.synonyms else (),
        setting.doc if wanted.documentation and own_row and setting is not None else None,
    )


def _overridden(
    setting: Setting,
    default: Value,
    synonyms: list[ConfigSynonym],
    overrides: Mapping[str, str],
    source: Source,
    wanted: ConfigQuery,
) -> ConfigEntry:
    """An entry of a group or a subscription: its own value, or what it falls back to."""
    value = text_of(setting, default)
    if setting.name in overrides:
        value = text_of(setting, parse(setting, overrides[setting.name]))
        synonyms = [ConfigSynonym(setting.name, value, source), *synonyms]
    return _entry(setting, value, synonyms, wanted)


def _entry(
    setting: Setting,
    value: str | None,
    synonyms: list[ConfigSynonym],
    wanted: ConfigQuery,
    *,
    read_only: bool = False,
) -> ConfigEntry:
    return ConfigEntry(
        setting.name,
        value,
        synonyms[0].source if synonyms else Source.DEFAULT,
        read_only,
        setting.sensitive,
        setting.type,
        tuple(synonyms) if wanted.synonyms else (),
        setting.doc if wanted.documentation else None,
    )
