"""Configs of a group: consumer groups of KIP-848, share groups, streams groups."""

from headrace.settings.definitions.checks import OffsetReset, OneOf, at_least
from headrace.settings.definitions.setting import accepted
from headrace.settings.definitions.value_type import BOOLEAN, INT, STRING

# fmt: off
CONFIGS = (
    accepted("consumer.assignment.interval.ms", INT, 1000,
             "Shortest time between two assignments of this consumer group.", at_least(0)),
    accepted("consumer.heartbeat.interval.ms", INT, 5000,
             "Heartbeat interval that members of this consumer group are given.", at_least(1)),
    accepted("consumer.session.timeout.ms", INT, 45000,
             "A member of this consumer group that is silent for this long is removed.", at_least(1)),
    accepted("share.assignment.interval.ms", INT, 1000,
             "Shortest time between two assignments of this share group.", at_least(0)),
    accepted("share.auto.offset.reset", STRING, "latest",
             "Where this share group begins to read a partition: earliest, latest, or a duration ago.", OffsetReset()),
    accepted("share.delivery.count.limit", INT, 5,
             "Most times that a record is delivered to this share group.", at_least(2)),
    accepted("share.heartbeat.interval.ms", INT, 5000,
             "Heartbeat interval that members of this share group are given.", at_least(1)),
    accepted("share.isolation.level", STRING, "read_uncommitted",
             "Whether this share group sees records of open and aborted transactions.", OneOf("read_committed", "read_uncommitted")),
    accepted("share.partition.max.record.locks", INT, 2000,
             "Most records of a partition that members of this share group hold at one time.", at_least(100)),
    accepted("share.record.lock.duration.ms", INT, 30000,
             "How long a member may hold a record before it is offered again.", at_least(1000)),
    accepted("share.renew.acknowledge.enable", BOOLEAN, True,
             "Let members of this share group prolong their hold on a record."),
    accepted("share.session.timeout.ms", INT, 45000,
             "A member of this share group that is silent for this long is removed.", at_least(1)),
    accepted("streams.assignment.interval.ms", INT, 1000,
             "Shortest time between two assignments of this streams group.", at_least(0)),
    accepted("streams.heartbeat.interval.ms", INT, 5000,
             "Heartbeat interval that members of this streams group are given.", at_least(1)),
    accepted("streams.initial.rebalance.delay.ms", INT, 3000,
             "How long this streams group, when empty, waits for more members before its first rebalance.", at_least(0)),
    accepted("streams.num.standby.replicas", INT, 0,
             "Standby copies of each task of this streams group.", at_least(0)),
    accepted("streams.session.timeout.ms", INT, 45000,
             "A member of this streams group that is silent for this long is removed.", at_least(1)),
)
# fmt: on
