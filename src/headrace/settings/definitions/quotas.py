"""Quotas and throttles."""

from headrace.settings.definitions.checks import at_least
from headrace.settings.definitions.setting import CLUSTER_WIDE, accepted, honoured, refused
from headrace.settings.definitions.value_type import CLASS, INT, LONG, LONG_MAX

# fmt: off
SETTINGS = (
    honoured("leader.replication.throttled.rate", LONG, LONG_MAX,
             "Bytes per second that leaders send for throttled replicas.", at_least(0), CLUSTER_WIDE, hidden=True),
    honoured("follower.replication.throttled.rate", LONG, LONG_MAX,
             "Bytes per second that followers fetch for throttled replicas.", at_least(0), CLUSTER_WIDE, hidden=True),
    honoured("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX,
             "Bytes per second for moving replicas between log directories.", at_least(0), CLUSTER_WIDE, hidden=True),
    accepted("alter.log.dirs.replication.quota.window.num", INT, 11,
             "Windows over which the throttle of moves between directories is measured.", at_least(1)),
    accepted("alter.log.dirs.replication.quota.window.size.seconds", INT, 1,
             "Length of such a window.", at_least(1)),
    refused("client.quota.callback.class", CLASS, None,
            "Java class that decides on client quotas."),
    accepted("controller.quota.window.num", INT, 11,
             "Windows over which quotas on topic changes are measured.", at_least(1)),
    accepted("controller.quota.window.size.seconds", INT, 1,
             "Length of such a window.", at_least(1)),
    accepted("quota.window.num", INT, 11,
             "Windows over which client quotas are measured.", at_least(1)),
    accepted("quota.window.size.seconds", INT, 1, "Length of such a window.", at_least(1)),
    accepted("replication.quota.window.num", INT, 11,
             "Windows over which the replication throttle is measured.", at_least(1)),
    accepted("replication.quota.window.size.seconds", INT, 1,
             "Length of such a window.", at_least(1)),
)
# fmt: on
