"""Idempotent and transactional producers."""

from headrace.settings.definitions.checks import at_least
from headrace.settings.definitions.setting import CLUSTER_WIDE, accepted, honoured
from headrace.settings.definitions.value_type import BOOLEAN, INT, SHORT

# fmt: off
SETTINGS = (
    honoured("producer.id.expiration.ms", INT, 86400000,
             "A partition forgets a producer that has not written for this long.", at_least(1), CLUSTER_WIDE),
    honoured("producer.id.expiration.check.interval.ms", INT, 600000,
             "How often producers to forget are looked for.", at_least(1), hidden=True),
    honoured("add.partitions.to.txn.retry.backoff.ms", INT, 20,
             "Pause before a partition is added to a transaction again when the last one is still ending.", at_least(1)),
    honoured("add.partitions.to.txn.retry.backoff.max.ms", INT, 100,
             "Longest total wait for the last transaction to end.", at_least(0)),
    honoured("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10000,
             "How often transactions that ran out of time are aborted.", at_least(1)),
    honoured("transaction.max.timeout.ms", INT, 900000,
             "Longest transaction timeout that a producer may ask for.", at_least(1)),
    honoured("transaction.partition.verification.enable", BOOLEAN, True,
             "Check that a partition was added to the transaction before records are written.", update=CLUSTER_WIDE),
    honoured("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3600000,
             "How often unused transactional ids are removed.", at_least(1)),
    accepted("transaction.state.log.load.buffer.size", INT, 5242880,
             "Bytes read at a time when a coordinator loads its part of the transaction topic.", at_least(1)),
    honoured("transaction.state.log.min.isr", INT, 2,
             "min.insync.replicas of the transaction topic.", at_least(1)),
    honoured("transaction.state.log.num.partitions", INT, 50,
             "Partitions of the transaction topic; do not change it once the topic exists.", at_least(1)),
    honoured("transaction.state.log.replication.factor", SHORT, 3,
             "Replicas of the transaction topic.", at_least(1)),
    honoured("transaction.state.log.segment.bytes", INT, 104857600,
             "Segment size of the transaction topic.", at_least(1)),
    accepted("transaction.two.phase.commit.enable", BOOLEAN, False,
             "Let producers take part in two-phase commits that outlast the timeout."),
    honoured("transactional.id.expiration.ms", INT, 604800000,
             "A transactional id that is not used for this long is forgotten.", at_least(1)),
)
# fmt: on
