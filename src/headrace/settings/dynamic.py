"""Applies dynamic configs to the settings of one broker and leaves out the values that break a rule there.

The controller accepts a config without knowing the file of every broker, so a value may be good for the cluster and bad
on one broker. There the setting keeps the value that it had; every other setting follows. A broker that starts has no
earlier dynamic value: its file and the defaults count instead.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from headrace.errors import SettingError
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.resolution import ConfigLayers
from headrace.settings.topic_config import TopicConfig

_logger = logging.getLogger(__name__)


class AppliedSettings(NamedTuple):
    """The settings in force, and one sentence for each dynamic config that is not."""

    settings: BrokerSettings
    rejected: tuple[str, ...] = ()


class _Difference(NamedTuple):
    """A dynamic config that is not yet as it should be; None unsets it."""

    is_default: bool  # one of the cluster's defaults, not of this broker's own
    name: str
    value: str | None


def apply_dynamic(
    settings: BrokerSettings, *, default: Mapping[str, str], broker: Mapping[str, str]
) -> AppliedSettings:
    """The same file under other dynamic configs: the cluster's defaults and this broker's own."""
    try:
        return AppliedSettings(settings.with_dynamic(default=default, broker=broker))
    except SettingError:
        return _apply_one_by_one(settings, default, broker)


def readable_topic_config(settings: BrokerSettings, overrides: Mapping[str, str]) -> TopicConfig:
    """The configuration of a topic that sets `overrides` itself, without those that cannot be read.

    They are checked when they are set. Nobody checks what is written into the store by hand or by a later version.
    """
    try:
        return settings.topic_config(overrides)
    except SettingError:
        readable = {}
        for name, text in overrides.items():
            try:
                settings.topic_config({name: text})
                readable[name] = text
            except SettingError as error:
                _logger.error("%s; this topic config is not in force: change or delete it", error)
        return settings.topic_config(readable)


def _apply_one_by_one(
    settings: BrokerSettings, default: Mapping[str, str], broker: Mapping[str, str]
) -> AppliedSettings:
    """Take in the differences that can be taken in, until none is left that can: one may make way for another."""
    waiting = [
        *_differences(settings.layers.dynamic_default, default, is_default=True),
        *_differences(settings.layers.dynamic_broker, broker, is_default=False),
    ]
    while True:
        rejected: dict[_Difference, str] = {}
        for difference in waiting:
            try:
                settings = BrokerSettings(_with(settings.layers, difference))
            except SettingError as error:
                rejected[difference] = str(error)
        if len(rejected) == len(waiting):
            return AppliedSettings(
                settings, tuple(_sentence(each, why) for each, why in rejected.items())
            )
        waiting = list(rejected)


def _differences(
    before: Mapping[str, str], after: Mapping[str, str], *, is_default: bool
) -> list[_Difference]:
    names = dict.fromkeys((*before, *after))
    return [
        _Difference(is_default, name, after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _with(layers: ConfigLayers, difference: _Difference) -> ConfigLayers:
    texts = dict(layers.dynamic_default if difference.is_default else layers.dynamic_broker)
    if difference.value is None:
        del texts[difference.name]
    else:
        texts[difference.name] = difference.value
    if difference.is_default:
        return replace(layers, dynamic_default=texts)
    return replace(layers, dynamic_broker=texts)


def _sentence(difference: _Difference, why: str) -> str:
    is_default, name, value = difference
    whose = "the cluster's default" if is_default else "this broker's"
    change = f"{name}={value}" if value is not None else f"the removal of {name}"
    return f"{change} ({whose}) is not in force: {' '.join(why.splitlines())}"
