"""Copying partitions between brokers: in-sync replicas, follower fetches, elections."""

from headrace.settings.definitions.checks import at_least
from headrace.settings.definitions.setting import CLUSTER_WIDE, accepted, honoured
from headrace.settings.definitions.value_type import BOOLEAN, INT, LONG, STRING

# fmt: off
SETTINGS = (
    honoured("min.insync.replicas", INT, 1,
             "Default of the topic config min.insync.replicas.", at_least(1), CLUSTER_WIDE),
    honoured("unclean.leader.election.enable", BOOLEAN, False,
             "Default of the topic config unclean.leader.election.enable.", update=CLUSTER_WIDE),
    honoured("replica.lag.time.max.ms", LONG, 30000,
             "A follower that has not caught up for this long leaves the in-sync replicas."),
    honoured("replica.fetch.min.bytes", INT, 1, "Fewest bytes that a follower's fetch waits for."),
    honoured("replica.fetch.wait.max.ms", INT, 500,
             "Longest wait of a follower's fetch; keep it below replica.lag.time.max.ms."),
    honoured("replica.fetch.max.bytes", INT, 1048576,
             "Bytes per partition that a follower asks for.", at_least(0)),
    honoured("replica.fetch.response.max.bytes", INT, 10485760,
             "Bytes per fetch answer that a follower asks for.", at_least(0)),
    honoured("replica.fetch.backoff.ms", INT, 1000,
             "Pause of a follower after a failed fetch of a partition.", at_least(0)),
    honoured("replica.high.watermark.checkpoint.interval.ms", LONG, 5000,
             "How often high watermarks are written to their checkpoint."),
    honoured("replica.socket.timeout.ms", INT, 30000, "Socket timeout of a follower's requests."),
    accepted("replica.socket.receive.buffer.bytes", INT, 65536,
             "SO_RCVBUF of a follower's sockets."),
    honoured("replica.selector.class", STRING, None,
             "How the replica that a consumer reads from is chosen; Kafka's rack-aware class name is understood."),
    accepted("num.replica.fetchers", INT, 1,
             "Connections per source broker that followers fetch over.", at_least(1), CLUSTER_WIDE),
    accepted("num.replica.alter.log.dirs.threads", INT, None,
             "Threads that move replicas between log directories."),
    accepted("follower.fetch.last.tiered.offset.enable", BOOLEAN, False,
             "Let a new follower start at the last offset that was moved to remote storage.", update=CLUSTER_WIDE),
)
# fmt: on
