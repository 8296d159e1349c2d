"""Which value is in force: a topic's own, then the broker's dynamic one, the cluster's dynamic
default, the file, and last the built-in default.

Pure: where the layers are stored is not known here. Names that mean the same thing in other units
(`log.retention.ms`, `.minutes`, `.hours`) are synonyms; the finest one that is set counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from headrace.errors import SettingError
from headrace.settings import definitions
from headrace.settings.definitions.setting import Setting
from headrace.settings.definitions.value_type import Value
from headrace.settings.values import parse

LISTENER_PREFIX = "listener.name."
# Properties that are handed to plug-ins: nobody but the plug-in can say whether they are known.
PLUGIN_PREFIXES = ("rlmm.config.", "rsm.config.", "config.providers.", "metrics.context.")
# May also be set for one SASL mechanism: listener.name.<listener>.<mechanism>.<name>
_PER_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.class",
    "sasl.login.callback.handler.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_ROLL = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_FLUSH = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_FAMILIES = {
    "log.flush.interval.ms": _FLUSH,
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_ROLL_JITTER, _ROLL_JITTER),
    **dict.fromkeys(_RETENTION, _RETENTION),
}
TOPIC_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": _FLUSH,
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": _RETENTION,
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": _ROLL_JITTER,
    "segment.ms": _ROLL,
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}
_MS_PER_UNIT = {"minutes": 60_000, "hours": 3_600_000}


class Source(IntEnum):
    """Where a value comes from; numbers as in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfigLayers:
    """What is set for one broker, by where it is set. Values are texts, as they were written.

    A change is a new object: what is computed from the layers is kept with them.
    """

    static: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    dynamic_broker: Mapping[str, str] = field(default_factory=dict)
    default_log_dir: str = "headrace-data"

    def set_texts(self) -> Iterator[tuple[Source, Mapping[str, str]]]:
        """The layers that somebody set, strongest first."""
        yield Source.DYNAMIC_BROKER, self.dynamic_broker
        yield Source.DYNAMIC_DEFAULT_BROKER, self.dynamic_default
        yield Source.STATIC_BROKER, self.static

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Every broker setting with its value in force; raises as `broker_values` does."""
        return broker_values(self)

    def default_of(self, setting: Setting) -> Value:
        return (self.default_log_dir,) if setting.name == "log.dir" else setting.default


def with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """`node.id` and `broker.id` are one thing: whichever is set stands for both."""
    both = dict(properties)
    if "node.id" in both:
        both.setdefault("broker.id", both["node.id"])
    elif int_or_none(both.get("broker.id")) not in {None, -1}:
        both["node.id"] = both["broker.id"]
    return both


def int_or_none(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def base_name(name: str) -> str:
    """The setting that a name with a listener's prefix is about; other names are themselves."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    base = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    for mechanism_setting in _PER_MECHANISM:
        if base.endswith("." + mechanism_setting):
            return mechanism_setting
    return base


def broker_setting(name: str) -> Setting | None:
    """The row for a broker setting, current or former, with or without a listener's prefix."""
    base = base_name(name)
    return definitions.BROKER.get(base) or definitions.UNLISTED.get(base)


def synonyms_of(name: str) -> tuple[str, ...]:
    """Names that set the same thing on a broker, strongest first."""
    base = base_name(name)
    return _FAMILIES.get(name, (name,)) if base == name else (name, base)


def texts_in_force(layers: ConfigLayers) -> dict[str, str]:
    """What is set, after the stronger layers replaced the weaker ones and their synonyms."""
    texts = dict(layers.static)
    for layer in (layers.dynamic_default, layers.dynamic_broker):
        for name in layer:
            for synonym in _FAMILIES.get(name, ()):
                texts.pop(synonym, None)
        texts.update(layer)
    return texts


def broker_values(layers: ConfigLayers) -> dict[str, Value]:
    """Every broker setting with its value in force; raises with one line per malformed value."""
    values = {name: setting.default for name, setting in definitions.UNLISTED.items()}
    for setting in definitions.BROKER.values():
        values[setting.name] = layers.default_of(setting)
    refusals = []
    for name, text in texts_in_force(layers).items():
        setting_or_none = broker_setting(name)
        if setting_or_none is None:
            continue
        try:
            values[name] = parse(setting_or_none, text, name)
        except SettingError as error:
            refusals.append(str(error))
    if refusals:
        raise SettingError("\n".join(refusals))
    return values


def in_milliseconds(name: str, number: int) -> int:
    """A synonym's number in the unit of the topic config; any negative retention means for ever."""
    milliseconds = number * _MS_PER_UNIT.get(name.rpartition(".")[2], 1)
    return -1 if name in _RETENTION and milliseconds < 0 else milliseconds


def topic_default(name: str, values: Mapping[str, Value]) -> Value:
    """What a topic has that does not set `name`, on a broker with these values."""
    for synonym in TOPIC_SYNONYMS.get(name, ()):
        value = values[synonym]
        if value is None:
            continue
        return in_milliseconds(synonym, value) if type(value) is int else value
    return definitions.TOPIC[name].default


def topic_values(overrides: Mapping[str, str], values: Mapping[str, Value]) -> dict[str, Value]:
    """Every topic config with its value in force; raises at the first malformed override."""
    return {
        name: parse(setting, overrides[name]) if name in overrides else topic_default(name, values)
        for name, setting in definitions.TOPIC.items()
    }
