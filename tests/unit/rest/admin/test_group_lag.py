"""Lag of a group from committed offsets and ends."""

from headrace.client.admin.groups import GroupDescription, MemberDescription
from headrace.client.brokers import Address
from headrace.client.cluster_metadata import Node
from headrace.ids import TopicPartition
from headrace.rest.admin.group_lag import lags, summary

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
MEMBER = MemberDescription(
    member_id="m", instance_id=None, client_id="c", host="h", assignment=[A0]
)
GROUP = GroupDescription(
    group_id="g",
    group_type="Classic",
    state="Stable",
    coordinator=Node(broker_id=1, address=Address("h", 1), rack=None),
    assignor="range",
    members=[MEMBER],
)


def test_lags_and_their_sum() -> None:
    found = lags(GROUP, {B0: 1, A0: 2, A1: 9}, {A0: 5, A1: 8})
    assert [(each.place, each.lag) for each in found] == [(A0, 3), (A1, 0)]
    assert found[0].member is MEMBER
    assert found[1].member is None
    told = summary(found)
    assert told is not None
    assert (told.greatest.place, told.total) == (A0, 3)


def test_nothing_has_no_summary() -> None:
    assert summary(lags(GROUP, {A0: 1}, {})) is None
