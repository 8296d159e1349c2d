"""Dynamic configs of brokers, as the cluster state brings them."""

import pytest

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.dynamic_settings import DynamicSettings
from headrace.controller.changes import Change, ChangeBatch, ConfigChanged
from headrace.controller.values import ALL_BROKERS, ConfigKind
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings

US = 1


class World:
    """A broker's settings and its view of the cluster."""

    def __init__(self) -> None:
        self.live = LiveSettings(BrokerSettings.from_properties({"node.id": str(US)}))
        self.cluster = ClusterView(US, "cluster", tells_dialled_address=False)
        self.listener = DynamicSettings(self.cluster, self.live)

    def publish(self, *changes: Change, is_snapshot: bool = False) -> int:
        batch = ChangeBatch(1, 0, changes, is_snapshot=is_snapshot)
        self.cluster.apply(batch)
        self.listener.hear(batch)
        return self.live.current.max_connections


def limit(name: str, value: int) -> ConfigChanged:
    return ConfigChanged(ConfigKind.BROKER, name, {"max.connections": str(value)})


@pytest.mark.parametrize("is_snapshot", [False, True])
def test_the_config_of_this_broker_goes_before_that_of_all(is_snapshot: bool) -> None:
    world = World()
    assert world.publish(limit(ALL_BROKERS, 70), is_snapshot=is_snapshot) == 70
    assert world.publish(limit(str(US), 60)) == 60
    assert world.publish(limit("2", 50)) == 60
    assert world.publish(ConfigChanged(ConfigKind.BROKER, str(US), {})) == 70


def test_a_snapshot_without_configs_takes_back_what_was_set() -> None:
    world = World()
    default = world.live.current.max_connections
    assert world.publish(limit(str(US), 60)) == 60
    assert world.publish(is_snapshot=True) == default


def test_other_changes_leave_the_settings_alone() -> None:
    world = World()
    before = world.live.current
    world.publish(ConfigChanged(ConfigKind.TOPIC, "orders", {"retention.ms": "1"}))
    assert world.live.current is before
