"""Settings that stop the start (and a dynamic change) because Headrace cannot do what they ask for. Pure.

A broker that took keystores or an authorizer and went on without them would serve everybody in plain text.
Every such setting is named, so that one attempt tells them all.
"""

from collections.abc import Iterator, Sequence

from headrace.settings.definitions.setting import Effect
from headrace.settings.listener import Listener
from headrace.settings.resolution import (
    LISTENER_PREFIX,
    ConfigLayers,
    base_name,
    broker_setting,
    texts_in_force,
)

# Names with these prefixes speak of security. One that is unknown (mistyped, or a plug-in's) is refused, too.
_SECURITY_PREFIXES = ("ssl.", "sasl.", "security.", "authorizer.", "zookeeper.ssl.")


def refusals(layers: ConfigLayers, listeners: Sequence[Listener]) -> list[str]:
    """One line per setting that cannot be honoured; the listeners are those that would be opened."""
    return [*_listener_refusals(layers, listeners), *_setting_refusals(layers)]


def _listener_refusals(layers: ConfigLayers, listeners: Sequence[Listener]) -> Iterator[str]:
    for listener in listeners:
        if listener.protocol != "PLAINTEXT":
            yield (
                f"listeners: {listener}: the security protocol {listener.protocol} is not supported; "
                "only PLAINTEXT is"
            )
    protocol = layers.values["security.inter.broker.protocol"]
    if protocol != "PLAINTEXT":
        yield f"security.inter.broker.protocol: {protocol} is not supported; only PLAINTEXT is"


def _setting_refusals(layers: ConfigLayers) -> Iterator[str]:
    values = layers.values
    for name in texts_in_force(layers):
        setting = broker_setting(name)
        if setting is None:
            if base_name(name).startswith(_SECURITY_PREFIXES):
                yield f"{name}: unknown setting; what concerns security is not ignored"
        elif setting.effect is Effect.REFUSED and values[name] != setting.default:
            yield f"{name}: not supported; remove it to start without what it does"
        elif setting.effect is Effect.ACTS and name.startswith(LISTENER_PREFIX):
            yield f"{name}: not supported for a single listener; {setting.name} holds for all of them"
