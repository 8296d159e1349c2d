"""Features of the cluster: levels that every broker knows, finalized by the controller (KIP-584).

Owns which features and levels this version of Headrace knows, and the rules for changing a finalized level. A level is finalized only
if every registered broker knows it. A cluster without a word on features (a new one, or one of an earlier version) gets the default
levels as soon as all of its brokers know them; from then on only UpdateFeatures changes them. A controller of an earlier version
leaves the node alone, and its cluster has no finalized features as long as it leads.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from headrace.controller.changes import FeaturesFinalized
from headrace.controller.core import Core, Decision
from headrace.coordination.nodes import FeatureNode
from headrace.wire.error_code import ErrorCode

A = TypeVar("A")

TRANSACTION_VERSION: Final = "transaction.version"

SUPPORTED_LEVELS: Final[Mapping[str, int]] = {
    "eligible.leader.replicas.version": 0,
    "group.version": 0,
    "share.version": 0,
    "streams.version": 0,
    TRANSACTION_VERSION: 2,
}
"""The highest level of each feature that this broker knows; the lowest is 0, which means that the feature is not there."""

DEFAULT_LEVELS: Final[Mapping[str, int]] = {TRANSACTION_VERSION: 2}


class UpgradeType(enum.IntEnum):
    """What a client agrees to; the numbers are those of UpdateFeatures."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The level that one feature shall have."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class FeatureAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the updates were made, all of them or none."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class UpdateFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """Finalized levels shall change."""

    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False

    def decide(self, core: Core) -> Decision[FeatureAnswer]:
        """Change all of them, or none."""
        for update in self.updates:
            reason = _refuse(core, update)
            if reason is not None:
                message = (
                    f"Invalid update version {update.level} for feature {update.name}. {reason}"
                )
                return Decision(
                    answer=FeatureAnswer(error=ErrorCode.INVALID_UPDATE_VERSION, message=message)
                )
        levels = dict(core.state.features)
        levels.update({update.name: update.level for update in self.updates})
        if self.validate_only or levels == core.state.features:
            return Decision(answer=FeatureAnswer())
        return _finalize(core, levels, FeatureAnswer())


class FinalizeDefaults(msgspec.Struct, frozen=True):
    """The brokers may all have come to know the default levels."""

    def decide(self, core: Core) -> Decision[None]:
        """Finalize them, where nothing was finalized before."""
        is_settled = FeatureNode.PATH in core.nodes.known
        if is_settled or not core.state.brokers or any(_unsupported(core, DEFAULT_LEVELS)):
            return Decision(answer=None)
        return _finalize(core, DEFAULT_LEVELS, None)


def _finalize(core: Core, levels: Mapping[str, int], answer: A) -> Decision[A]:
    finalized = dict(sorted(levels.items()))
    version = core.nodes.known.get(FeatureNode.PATH, -1) + 1
    return Decision(
        answer=answer,
        groups=((core.nodes.put(FeatureNode.PATH, FeatureNode(finalized).encode()),),),
        changes=(FeaturesFinalized(finalized, epoch_of(version)),),
    )


def epoch_of(node_version: int) -> int:
    """The epoch of finalized features, above 0: brokers of earlier versions tell 0, and clients look only at higher ones."""
    return node_version + 1


def _refuse(core: Core, update: FeatureUpdate) -> str | None:
    known_types = (
        UpgradeType.UPGRADE,
        UpgradeType.SAFE_DOWNGRADE,
        UpgradeType.UNSAFE_DOWNGRADE,
    )
    if update.upgrade_type not in known_types:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if update.name not in SUPPORTED_LEVELS:
        return f"Local controller {core.state.controller_id} does not support this feature."
    if update.level > SUPPORTED_LEVELS[update.name]:
        return (
            f"Local controller {core.state.controller_id} only supports versions "
            f"0-{SUPPORTED_LEVELS[update.name]}"
        )
    unsupported = next(_unsupported(core, {update.name: update.level}), None)
    if unsupported is not None:
        return unsupported
    current = core.state.features.get(update.name, 0)
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if update.level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None


def _unsupported(core: Core, levels: Mapping[str, int]) -> Iterator[str]:
    """Brokers that do not know one of these levels, as sentences."""
    for broker_id, broker in sorted(core.state.brokers.items()):
        known = dict(broker.features)
        for name, level in levels.items():
            if level > 0 and name not in known:
                yield f"Broker {broker_id} does not support this feature."
            elif level > known.get(name, 0):
                yield f"Broker {broker_id} only supports versions 0-{known[name]}"
