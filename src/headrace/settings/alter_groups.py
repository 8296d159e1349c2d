"""Rules for the configs of a group: its own types, and the bounds that the broker sets."""

from collections.abc import Iterator, Mapping

from headrace.errors import SettingError
from headrace.settings import definitions
from headrace.settings.definitions.value_type import Value
from headrace.settings.resolution import ConfigLayers
from headrace.settings.resource import invalid_config
from headrace.settings.values import nearest_name, parse
from headrace.wire.refusal import Refusal


def refuse_group(configs: Mapping[str, str], layers: ConfigLayers) -> Refusal | None:
    """Why a group may not have these configs; None if it may."""
    values: dict[str, Value] = {}
    for name, text in configs.items():
        setting = definitions.GROUP.get(name)
        if setting is None:
            nearest = nearest_name(name, definitions.GROUP)
            hint = f"; nearest known name: {nearest}" if nearest else ""
            return invalid_config(f"Unknown group config name: {name}{hint}")
        try:
            values[name] = parse(setting, text)
        except SettingError as error:
            return invalid_config(str(error))
    for sentence in _broken_bounds(values, layers.values):
        return invalid_config(sentence)
    return None


def _broken_bounds(values: Mapping[str, Value], broker: Mapping[str, Value]) -> Iterator[str]:
    for name, value in values.items():
        if not isinstance(value, int):
            continue
        kind, _, rest = name.partition(".")
        # The one pair of names that does not follow the pattern.
        rest = "standby.replicas" if rest == "num.standby.replicas" else rest
        least = broker.get(f"group.{kind}.min.{rest}")
        if isinstance(least, int) and value < least:
            yield f"{name} must be greater than or equal to group.{kind}.min.{rest}"
        most = broker.get(f"group.{kind}.max.{rest}")
        if isinstance(most, int) and value > most:
            yield f"{name} must be less than or equal to group.{kind}.max.{rest}"
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        timeout = values.get(session, broker[f"group.{session}"])
        interval = values.get(heartbeat, broker[f"group.{heartbeat}"])
        assert isinstance(timeout, int)
        assert isinstance(interval, int)
        if timeout <= interval:
            yield f"{session} must be greater than {heartbeat}"
