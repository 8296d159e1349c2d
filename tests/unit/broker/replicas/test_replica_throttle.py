"""Which replicas are copied slowly, and when they wait."""

from uuid import UUID

import pytest

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.replica_throttle import ReplicaThrottle
from headrace.controller.changes import ChangeBatch, ConfigChanged, TopicCreated
from headrace.controller.values import ConfigKind, PartitionState
from headrace.ids import TopicPartition
from headrace.replication.throttle import UNLIMITED

OWN_ID, LAGGING, IN_SYNC = 1, 2, 3
REPLICAS_KEY = "leader.replication.throttled.replicas"
PARTITION = TopicPartition("t", 1)


class Setting:
    """What an operator changes, and the time."""

    def __init__(self) -> None:
        self.rate = UNLIMITED
        self.now_ms = 1_700_000_000_000
        self.cluster = ClusterView(OWN_ID, "cluster", tells_dialled_address=False)
        partition = PartitionState((1, 2, 3), (OWN_ID, IN_SYNC), OWN_ID, 0, 0)
        created = TopicCreated("t", UUID(int=1), (partition, partition))
        self.cluster.apply(ChangeBatch(1, 1, (created,), is_snapshot=True))
        self.throttle = ReplicaThrottle(
            self.cluster, lambda: self.now_ms, lambda: self.rate, replicas_key=REPLICAS_KEY
        )

    def list_replicas(self, text: str) -> None:
        change = ConfigChanged(ConfigKind.TOPIC, "t", {REPLICAS_KEY: text})
        self.cluster.apply(ChangeBatch(1, 2, (change,)))


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_without_a_rate_nobody_waits(setting: Setting) -> None:
    setting.list_replicas("*")
    setting.throttle.passed(PARTITION, 1 << 40)
    assert not setting.throttle.holds_back(PARTITION, LAGGING)


def test_a_lagging_replica_waits_until_the_rate_is_kept(setting: Setting) -> None:
    setting.list_replicas("*")
    setting.rate = 100
    assert not setting.throttle.holds_back(PARTITION, LAGGING)
    setting.throttle.passed(PARTITION, 1_000)
    assert not setting.throttle.holds_back(PARTITION, LAGGING)
    setting.throttle.passed(PARTITION, 1)
    assert setting.throttle.holds_back(PARTITION, LAGGING)
    assert not setting.throttle.holds_back(PARTITION, IN_SYNC)
    setting.now_ms += 11_000
    assert not setting.throttle.holds_back(PARTITION, LAGGING)


@pytest.mark.parametrize(
    ("text", "is_held_back"),
    [
        ("*", True),
        ("1:1", True),
        ("0:1,1:1", True),
        ("1:2", False),
        ("0:1", False),
        ("none", False),
        ("", False),
    ],
)
def test_only_listed_replicas_wait(setting: Setting, text: str, is_held_back: bool) -> None:
    setting.rate = 0
    setting.list_replicas("*")
    setting.throttle.passed(PARTITION, 1)
    setting.list_replicas(text)
    assert setting.throttle.holds_back(PARTITION, LAGGING) is is_held_back


def test_what_is_not_listed_does_not_count(setting: Setting) -> None:
    setting.rate = 0
    setting.list_replicas("0:1")
    setting.throttle.passed(PARTITION, 1_000)
    setting.list_replicas("*")
    assert not setting.throttle.holds_back(PARTITION, LAGGING)


def test_a_partition_that_is_gone_is_nobodys_burden(setting: Setting) -> None:
    setting.rate = 0
    setting.throttle.passed(TopicPartition("gone", 0), 1)
    assert not setting.throttle.holds_back(TopicPartition("gone", 0), LAGGING)
