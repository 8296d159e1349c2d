"""Finalized features: when the defaults are, who may change them, and what a later controller reads."""

import msgspec
import pytest

from headrace.controller.changes import (
    BrokerRegistered,
    ChangeBatch,
    ControllerElected,
    FeaturesFinalized,
    decode,
    encode,
)
from headrace.controller.cluster_state import NO_FEATURES_EPOCH, ClusterState
from headrace.controller.core import ControllerSettings, Core, Event, NodeVersions
from headrace.controller.features import (
    DEFAULT_LEVELS,
    SUPPORTED_LEVELS,
    FeatureAnswer,
    FeatureUpdate,
    FinalizeDefaults,
    UpdateFeatures,
    UpgradeType,
    epoch_of,
)
from headrace.controller.loading import Trees, picture_of
from headrace.controller.machine import ControllerMachine
from headrace.controller.values import Broker
from headrace.coordination.nodes import FeatureNode
from headrace.coordination.store import Node
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import PlainRules

TXN = "transaction.version"
ALL_KNOWN = tuple(SUPPORTED_LEVELS.items())


def machine(*brokers: Broker) -> ControllerMachine:
    core = Core(
        state=ClusterState(),
        nodes=NodeVersions(),
        settings=ControllerSettings(),
        config_rules=PlainRules(),
        new_topic_id=lambda: None,  # type: ignore[arg-type,return-value]
        random_below=lambda _: 0,
    )
    core.state.apply(ControllerElected(1, 4))
    for broker in brokers:
        core.state.apply(BrokerRegistered(broker))
    return ControllerMachine(core)


def perform(controller: ControllerMachine, event: Event[object]) -> object:
    decision = controller.decide(event)
    if decision.changes:
        controller.written(event, decision)
    return decision.answer


def update(
    level: int,
    upgrade_type: int = UpgradeType.UPGRADE,
    *,
    name: str = TXN,
    validate_only: bool = False,
) -> UpdateFeatures:
    wanted = FeatureUpdate(name=name, level=level, upgrade_type=upgrade_type)
    return UpdateFeatures(updates=(wanted,), validate_only=validate_only)


NEW = Broker(1, 10, features=ALL_KNOWN)
OLD = Broker(2, 11)


def test_the_defaults_are_finalized_once_every_broker_knows_them() -> None:
    controller = machine()
    perform(controller, FinalizeDefaults())
    assert controller.core.state.features_epoch == NO_FEATURES_EPOCH, "nobody is there"
    for broker in (NEW, OLD):
        controller.core.state.apply(BrokerRegistered(broker))
    perform(controller, FinalizeDefaults())
    assert controller.core.state.features == {}, "a rolling upgrade is under way"
    controller.core.state.apply(BrokerRegistered(Broker(2, 12, features=ALL_KNOWN)))
    perform(controller, FinalizeDefaults())
    assert controller.core.state.features == DEFAULT_LEVELS
    assert controller.core.state.features_epoch == 1


def test_what_was_changed_by_hand_stays() -> None:
    controller = machine(NEW)
    perform(controller, FinalizeDefaults())
    assert perform(controller, update(0, UpgradeType.SAFE_DOWNGRADE)) == FeatureAnswer()
    perform(controller, FinalizeDefaults())
    assert controller.core.state.features[TXN] == 0
    assert controller.core.state.features_epoch == 2


def test_an_upgrade_and_what_is_refused() -> None:
    controller = machine(NEW)
    assert perform(controller, update(1)) == FeatureAnswer()
    assert perform(controller, update(2, validate_only=True)) == FeatureAnswer()
    assert controller.core.state.features == {TXN: 1}
    assert perform(controller, update(1)) == FeatureAnswer()
    assert controller.core.state.features_epoch == 1, "nothing has changed"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (update(3), "Local controller 1 only supports versions 0-2"),
        (update(-1), "A feature version cannot be less than 0."),
        (update(1, name="x.version"), "Local controller 1 does not support this feature."),
        (update(2, UpgradeType.UNKNOWN), "The controller does not support the given upgrade type."),
        (update(2, 9), "The controller does not support the given upgrade type."),
        (update(2, UpgradeType.SAFE_DOWNGRADE), "Can't downgrade to a newer version."),
        (
            update(0),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        ),
    ],
)
def test_a_refusal_says_why_in_kafkas_words(event: UpdateFeatures, reason: str) -> None:
    controller = machine(NEW)
    perform(controller, update(1))
    answer = perform(controller, event)
    assert isinstance(answer, FeatureAnswer)
    assert answer.error == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.message is not None
    assert answer.message.endswith(". " + reason)
    assert controller.core.state.features == {TXN: 1}


def test_a_broker_of_an_earlier_version_stands_in_the_way() -> None:
    controller = machine(NEW, OLD)
    answer = perform(controller, update(1))
    assert isinstance(answer, FeatureAnswer)
    assert answer.message == (
        "Invalid update version 1 for feature transaction.version. Broker 2 does not support this feature."
    )


def test_one_bad_update_spoils_the_others() -> None:
    controller = machine(NEW)
    event = UpdateFeatures(
        updates=(FeatureUpdate(name=TXN, level=1), FeatureUpdate(name="x", level=1))
    )
    answer = perform(controller, event)
    assert isinstance(answer, FeatureAnswer)
    assert answer.error == ErrorCode.INVALID_UPDATE_VERSION
    assert controller.core.state.features == {}


def test_the_next_controller_reads_what_was_finalized() -> None:
    node = Node(FeatureNode({TXN: 1}).encode(), 6, 0)
    trees = Trees(
        topics={}, configs={}, epochs={}, deleted_topics={}, producer_ids=None, features=node
    )
    state = picture_of(trees, ControllerElected(1, 5)).state
    assert (state.features, state.features_epoch) == ({TXN: 1}, epoch_of(6))
    copy = ClusterState()
    for change in state.snapshot():
        copy.apply(change)
    assert (copy.features, copy.features_epoch) == (state.features, state.features_epoch)
    broken = msgspec.structs.replace(trees, features=Node(b"{", 3, 0))
    picture = picture_of(broken, ControllerElected(1, 5))
    assert picture.state.features_epoch == NO_FEATURES_EPOCH
    assert picture.faults


def test_a_broker_of_an_earlier_version_passes_the_change_over() -> None:
    batch = ChangeBatch(1, 1, (FeaturesFinalized({TXN: 2}, 1),))
    data = encode(batch)
    assert decode(data).changes == batch.changes
    assert msgspec.json.decode(data)["skippable"] == ["features"]
