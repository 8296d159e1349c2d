"""Names from Kafka's ZooKeeper days and before, which files and tutorials still carry.

Kafka 4.3 no longer knows them. They are listed by DescribeConfigs only where they are set.
"""

from headrace.settings.definitions.checks import at_least
from headrace.settings.definitions.setting import accepted, honoured, refused
from headrace.settings.definitions.value_type import (
    BOOLEAN,
    INT,
    INT_MAX,
    LONG,
    LONG_MAX,
    PASSWORD,
    STRING,
)

# fmt: off
SETTINGS = (
    honoured("zookeeper.connect", STRING, None,
             "The ZooKeeper ensemble as host:port,host:port/path; set, it makes this broker a member of a cluster."),
    honoured("zookeeper.session.timeout.ms", INT, 18000,
             "ZooKeeper drops a broker that is silent for this long.", at_least(1)),
    honoured("zookeeper.connection.timeout.ms", INT, None,
             "How long the broker tries to reach ZooKeeper when it starts; unset means zookeeper.session.timeout.ms."),
    refused("zookeeper.set.acl", BOOLEAN, False, "Protect what is written to ZooKeeper with ACLs."),
    accepted("zookeeper.max.in.flight.requests", INT, 10, "Requests to ZooKeeper at one time.", at_least(1)),
    accepted("zookeeper.sync.time.ms", INT, 2000, "How far a ZooKeeper follower may lie behind."),
    refused("zookeeper.metadata.migration.enable", BOOLEAN, False, "Move a cluster from ZooKeeper to KRaft."),
    refused("zookeeper.ssl.client.enable", BOOLEAN, False, "Talk TLS to ZooKeeper."),
    refused("zookeeper.ssl.keystore.location", STRING, None, "Key store for ZooKeeper."),
    refused("zookeeper.ssl.truststore.location", STRING, None, "Trust store for ZooKeeper."),
    refused("zookeeper.ssl.keystore.password", PASSWORD, None, "Password of the key store for ZooKeeper."),
    refused("zookeeper.ssl.truststore.password", PASSWORD, None, "Password of the trust store for ZooKeeper."),
    honoured("port", INT, 9092, "Port to listen on when listeners is not set.", at_least(0)),
    honoured("host.name", STRING, None, "Address to listen on when listeners is not set."),
    honoured("advertised.host.name", STRING, None,
             "Host that clients are told to dial, when advertised.listeners is not set."),
    honoured("advertised.port", INT, None,
             "Port that clients are told to dial, when advertised.listeners is not set."),
    accepted("broker.id.generation.enable", BOOLEAN, True, "Let ZooKeeper number brokers that have no id."),
    accepted("reserved.broker.max.id", INT, 1000, "Highest id that is not given out by ZooKeeper.", at_least(0)),
    accepted("control.plane.listener.name", STRING, None, "Listener for the controller's requests to this broker."),
    accepted("controlled.shutdown.max.retries", INT, 3, "Attempts to hand leadership over before stopping."),
    accepted("controlled.shutdown.retry.backoff.ms", LONG, 5000, "Pause between those attempts."),
    accepted("leader.imbalance.per.broker.percentage", INT, 10,
             "Share of leaders away from their preferred replica that is tolerated."),
    accepted("inter.broker.protocol.version", STRING, None, "Release that the brokers of a cluster speak."),
    accepted("log.message.format.version", STRING, None, "Oldest release whose record format is written."),
    accepted("log.message.downconversion.enable", BOOLEAN, True, "Rewrite records for very old consumers."),
    refused("log.message.timestamp.difference.max.ms", LONG, LONG_MAX,
            "How far a timestamp may differ from the broker's clock, in one number for both directions.", at_least(0)),
    accepted("auto.include.jmx.reporter", BOOLEAN, True, "Report metrics over JMX."),
    refused("delegation.token.master.key", PASSWORD, None, "Older name of delegation.token.secret.key."),
    accepted("password.encoder.secret", PASSWORD, None, "Secret for passwords that are kept in ZooKeeper."),
    accepted("password.encoder.old.secret", PASSWORD, None, "The secret before this one."),
    accepted("password.encoder.iterations", INT, 4096, "Rounds of the password encoder."),
    accepted("password.encoder.key.length", INT, 128, "Key length of the password encoder."),
    accepted("password.encoder.cipher.algorithm", STRING, "AES/CBC/PKCS5Padding", "Cipher of the password encoder."),
    accepted("password.encoder.keyfactory.algorithm", STRING, None, "Key factory of the password encoder."),
    accepted("offsets.commit.required.acks", INT, -1, "Acknowledgements that a commit of offsets waits for."),
    accepted("group.coordinator.new.enable", BOOLEAN, False, "Use Kafka's newer group coordinator."),
    accepted("group.share.max.groups", INT, 10, "Most share groups.", at_least(1)),
    accepted("eligible.leader.replicas.enable", BOOLEAN, False, "Keep eligible leader replicas (KIP-966)."),
    refused("quota.producer.default", LONG, LONG_MAX, "Bytes per second for each producer.", at_least(1)),
    refused("quota.consumer.default", LONG, LONG_MAX, "Bytes per second for each consumer.", at_least(1)),
    accepted("replica.lag.max.messages", LONG, INT_MAX, "Records that an in-sync replica may lie behind."),
    accepted("num.consumer.fetchers", INT, 1, "Fetchers of the old consumer."),
)
# fmt: on
