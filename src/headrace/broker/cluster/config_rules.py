"""Validates configs for the controller (`controller.core.ConfigRules`) against the definitions of settings.

`config_changes` has validated a client's request before, with Kafka's error codes and messages. A change of the cluster-wide
defaults is validated together with every broker's own configs, a change of one broker's configs together with the defaults. The
properties file of another broker is not known here, so the file of the controller's broker is used instead. A broker ignores a
value that is invalid only with its own file (`settings.dynamic`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.controller.values import ALL_BROKERS, ConfigKind
from headrace.settings import definitions
from headrace.settings.alter import validate_replacement
from headrace.settings.definitions.setting import Setting
from headrace.settings.definitions.value_type import ValueType
from headrace.settings.live_settings import LiveSettings
from headrace.settings.resolution import ConfigLayers, broker_setting, topic_default
from headrace.settings.resource import Resource, ResourceType
from headrace.settings.values import text_of


class SettingRules:
    """Validates against the settings of the controller's broker and the dynamic configs of all brokers."""

    def __init__(self, live_settings: LiveSettings, cluster: ClusterView) -> None:
        self._live_settings = live_settings
        self._cluster = cluster

    def check(self, kind: ConfigKind, name: str, values: Mapping[str, str]) -> str | None:
        """Why these values are invalid, or None."""
        layers = self._live_settings.current.layers
        if kind is not ConfigKind.BROKER:
            return _fault(Resource(ResourceType(kind), name), values, layers)
        defaults = self._cluster.state.config(kind, ALL_BROKERS)
        if name != ALL_BROKERS:
            own = Resource(ResourceType.BROKER, str(self._live_settings.current.node_id))
            return _fault(own, values, replace(layers, dynamic_default=defaults))
        resource = Resource(ResourceType.BROKER, ALL_BROKERS)
        fault = _fault(resource, values, replace(layers, dynamic_broker={}))
        if fault is not None:
            return fault
        for broker, configs in self._own_configs():
            theirs = replace(layers, dynamic_broker=configs)
            fault = _fault(resource, values, theirs)
            # A fault that the broker had before this change does not refuse the change.
            if fault is not None and _fault(resource, defaults, theirs) is None:
                return f"{fault} (on broker {broker})"
        return None

    def _own_configs(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """The configs of each broker that has any of its own."""
        for (kind, name), configs in self._cluster.state.configs.items():
            if kind is ConfigKind.BROKER and name != ALL_BROKERS:
                yield name, configs

    def is_list(self, kind: ConfigKind, key: str) -> bool:
        """Whether values can be appended to and subtracted from this key."""
        setting = _setting(kind, key)
        return setting is not None and setting.type is ValueType.LIST

    def default(self, kind: ConfigKind, key: str) -> str | None:
        """The value that is in force when none is set."""
        setting = _setting(kind, key)
        if setting is None:
            return None
        values = self._live_settings.current.layers.values
        if kind is ConfigKind.TOPIC:
            return text_of(setting, topic_default(key, values))
        return text_of(setting, values.get(key, setting.default))


def _fault(resource: Resource, values: Mapping[str, str], layers: ConfigLayers) -> str | None:
    refusal = validate_replacement(resource, list(values.items()), layers).refusal
    return None if refusal is None else refusal.message


def _setting(kind: ConfigKind, key: str) -> Setting | None:
    match kind:
        case ConfigKind.TOPIC:
            return definitions.TOPIC.get(key)
        case ConfigKind.BROKER:
            return broker_setting(key)
        case ConfigKind.GROUP:
            return definitions.GROUP.get(key)
        case ConfigKind.CLIENT_METRICS:
            return None  # Kafka lets nobody append to the lists of a subscription
