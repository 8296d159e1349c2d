"""One row of the tables of settings.

There are three kinds of row. Headrace acts on `honoured` ones. It takes `accepted` ones without acting on
them, so that files and tools written for Kafka pass: nothing is lost without them. `refused` ones stop the
start when they are set to anything but the default, because a user who set them relies on what is not built
(encryption, authorization, a veto). A test holds the first kind to what `BrokerSettings` and `TopicConfig` read.
"""

from enum import Enum
from typing import NamedTuple

from headrace.settings.definitions.checks import Check
from headrace.settings.definitions.value_type import Value, ValueType


class Update(Enum):
    """Whether a running broker takes a new value, and for whom. The words are Kafka's."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


READ_ONLY = Update.READ_ONLY
PER_BROKER = Update.PER_BROKER
CLUSTER_WIDE = Update.CLUSTER_WIDE


class Effect(Enum):
    """What a setting does in Headrace. The words are those of docs/settings.md."""

    ACTS = "acts"
    IGNORED = "ignored"
    REFUSED = "refused"


class Setting(NamedTuple):
    """What is known about one setting. A hidden one is taken but not listed by DescribeConfigs."""

    name: str
    type: ValueType
    default: Value
    doc: str
    check: Check | None = None
    update: Update = READ_ONLY
    effect: Effect = Effect.ACTS
    hidden: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is ValueType.PASSWORD


def honoured(
    name: str,
    type_: ValueType,
    default: Value,
    doc: str,
    check: Check | None = None,
    update: Update = READ_ONLY,
    hidden: bool = False,  # noqa: FBT001, FBT002 (a row of a table)
) -> Setting:
    return Setting(name, type_, default, doc, check, update, Effect.ACTS, hidden)


def accepted(
    name: str,
    type_: ValueType,
    default: Value,
    doc: str,
    check: Check | None = None,
    update: Update = READ_ONLY,
    hidden: bool = False,  # noqa: FBT001, FBT002 (a row of a table)
) -> Setting:
    return Setting(name, type_, default, doc, check, update, Effect.IGNORED, hidden)


def refused(
    name: str,
    type_: ValueType,
    default: Value,
    doc: str,
    check: Check | None = None,
    update: Update = READ_ONLY,
    hidden: bool = False,  # noqa: FBT001, FBT002 (a row of a table)
) -> Setting:
    return Setting(name, type_, default, doc, check, update, Effect.REFUSED, hidden)
