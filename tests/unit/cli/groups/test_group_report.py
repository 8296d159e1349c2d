"""The tables of `consumer-groups`: columns are as wide as Kafka's."""

from dataclasses import replace

from headrace.cli.groups.group_report import (
    OffsetRow,
    assignment_text,
    member_lines,
    offset_lines,
    state_lines,
)
from headrace.client.admin.group_offsets import CommittedOffset
from headrace.client.admin.groups import GroupDescription, MemberDescription
from headrace.client.brokers import Address
from headrace.client.cluster_metadata import Node
from headrace.ids import TopicPartition

MEMBER = MemberDescription(
    member_id="rdkafka-1",
    instance_id=None,
    client_id="rdkafka",
    host="/127.0.0.1",
    assignment=[TopicPartition("orders", 1), TopicPartition("orders", 0)],
)
GROUP = GroupDescription(
    group_id="g",
    group_type="Classic",
    state="Stable",
    coordinator=Node(broker_id=1, address=Address("127.0.0.1", 9092), rack=None),
    assignor="range",
    members=[MEMBER],
)


def committed(offset: int) -> CommittedOffset:
    return CommittedOffset(offset=offset, leader_epoch=4, metadata="")


def test_offsets() -> None:
    rows = [
        OffsetRow(
            partition=TopicPartition("orders", 0),
            committed=committed(3),
            log_end_offset=10,
            member=MEMBER,
        ),
        OffsetRow(
            partition=TopicPartition("a-topic-with-a-long-name", 12),
            committed=None,
            log_end_offset=None,
            member=None,
        ),
    ]
    assert offset_lines("g", rows, verbose=False) == [
        "GROUP           TOPIC                    PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG    "
        "         CONSUMER-ID     HOST            CLIENT-ID",
        "g               orders                   0          3               10              7      "
        "         rdkafka-1       /127.0.0.1      rdkafka",
        "g               a-topic-with-a-long-name 12         -               -               -      "
        "         -               -               -",
    ]
    header, first, second = offset_lines("g", rows, verbose=True)
    assert header.split()[2:5] == ["PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET"]
    assert first.split()[2:5] == ["0", "4", "3"]
    assert second.split()[2:5] == ["12", "-", "-"]


def test_a_group_ahead_of_the_log_has_a_negative_lag() -> None:
    row = OffsetRow(
        partition=TopicPartition("t", 0), committed=committed(5), log_end_offset=2, member=None
    )
    assert row.lag == -3
    assert row.as_json()["lag"] == -3


def test_members() -> None:
    assert member_lines(GROUP, verbose=False) == [
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     ",
        "g               rdkafka-1       /127.0.0.1      rdkafka         2               ",
    ]
    assert member_lines(GROUP, verbose=True) == [
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     "
        "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   ",
        "g               rdkafka-1       /127.0.0.1      rdkafka         2               "
        "-               orders:0,1           -               -                   ",
    ]


def test_static_members_have_a_column() -> None:
    static = replace(GROUP, members=[replace(MEMBER, instance_id="one")])
    assert member_lines(static, verbose=False) == [
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     ",
        "g               rdkafka-1       one               /127.0.0.1      rdkafka         2               ",
    ]


def test_members_of_two_protocols_say_which() -> None:
    mixed = replace(
        GROUP, members=[replace(MEMBER, upgraded=True), replace(MEMBER, upgraded=False)]
    )
    header, first, second = member_lines(mixed, verbose=True)
    assert header.endswith(" UPGRADED")
    assert first.endswith(" true")
    assert second.endswith(" false")


def test_state() -> None:
    assert state_lines(GROUP, verbose=False) == [
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS",
        "g               127.0.0.1:9092  (1)       range                Stable               1",
    ]
    header, row = state_lines(replace(GROUP, group_epoch=7), verbose=True)
    assert header.split()[-3:] == ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    assert row.split()[-3:] == ["7", "-", "1"]


def test_assignments() -> None:
    partitions = [TopicPartition("b", 10), TopicPartition("b", 9), TopicPartition("a", 0)]
    assert assignment_text(partitions) == "a:0;b:9,10"
    assert assignment_text([]) == "-"
