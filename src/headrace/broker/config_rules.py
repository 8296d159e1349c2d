"""What the controller asks about configs (`controller.core.ConfigRules`), answered from the tables of settings.

The codes and words for a client's request are given before, where the request comes in; here is the last word, by the
settings of the broker that the controller runs on.
"""

from collections.abc import Mapping

from headrace.broker.live_settings import LiveSettings
from headrace.broker.settings import definitions
from headrace.broker.settings.alter import validate_replacement
from headrace.broker.settings.definitions.setting import Setting
from headrace.broker.settings.definitions.value_type import ValueType
from headrace.broker.settings.resolution import broker_setting, topic_default
from headrace.broker.settings.resource import Resource, ResourceType
from headrace.broker.settings.values import text_of
from headrace.controller.values import ConfigKind


class SettingRules:
    """See the module's text."""

    def __init__(self, live_settings: LiveSettings) -> None:
        self._live_settings = live_settings

    def check(self, kind: ConfigKind, name: str, values: Mapping[str, str]) -> str | None:
        """Why these values cannot be, or None."""
        settings = self._live_settings.current
        if kind is ConfigKind.BROKER and name:
            # Another broker's configs are judged as if they were ours: its file is not known here.
            name = str(settings.node_id)
        resource = Resource(ResourceType(kind), name)
        outcome = validate_replacement(resource, list(values.items()), settings.layers)
        return None if outcome.refusal is None else outcome.refusal.message

    def is_list(self, kind: ConfigKind, key: str) -> bool:
        """Whether values can be appended to and subtracted from this key."""
        setting = _setting(kind, key)
        return setting is not None and setting.type is ValueType.LIST

    def default(self, kind: ConfigKind, key: str) -> str | None:
        """What holds when nothing is set."""
        setting = _setting(kind, key)
        if setting is None:
            return None
        values = self._live_settings.current.layers.values
        if kind is ConfigKind.TOPIC:
            return text_of(setting, topic_default(key, values))
        return text_of(setting, values.get(key, setting.default))


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
