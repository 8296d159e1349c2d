"""The first of the classic tutorials, as printed: ZooKeeper, one broker, a topic, a producer, a consumer."""

from pathlib import Path

from tests.support.terminals import Terminals, wait_until


def test_first_steps(tmp_path: Path) -> None:
    with Terminals(tmp_path) as terminals:
        terminals.start_zookeeper("bin/zookeeper-server-start.sh config/zookeeper.properties")
        terminals.start_broker("bin/kafka-server-start.sh config/server.properties", "9092")
        created = terminals.run(
            "bin/kafka-topics.sh --create --zookeeper localhost:2181"
            " --replication-factor 1 --partitions 13 --topic my-topic"
        )
        assert created == "Created topic my-topic.\n"
        assert (
            terminals.run("bin/kafka-topics.sh --list --zookeeper localhost:2181") == "my-topic\n"
        )
        described = terminals.run(
            "bin/kafka-topics.sh --describe --topic my-topic --zookeeper localhost:2181"
        ).splitlines()
        assert "\tPartitionCount: 13\tReplicationFactor: 1\t" in described[0]
        assert [line.split("\t")[2:6] for line in described[1:]] == [
            [f"Partition: {number}", "Leader: 0", "Replicas: 0", "Isr: 0"] for number in range(13)
        ]

        producer = terminals.start(
            "bin/kafka-console-producer.sh --broker-list localhost:9092 --topic my-topic"
        )
        producer.type("first message", "second message")
        consumer = terminals.start(
            "bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic my-topic"
            " --from-beginning"
        )
        wait_until(
            lambda: sorted(consumer.lines) == ["first message", "second message"],
            "what was written before is read",
        )
        producer.type("third message")
        wait_until(lambda: "third message" in consumer.lines, "what is written now is read")
        assert len(consumer.lines) == 3
        producer.end()
        consumer.end()
