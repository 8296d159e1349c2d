"""The first of the classic tutorials, as printed: ZooKeeper, one broker, a topic, a producer, a consumer."""

from pathlib import Path

from tests.support.group_reading import GroupReading
from tests.support.terminals import Terminals, wait_until

PRODUCE = "bin/kafka-console-producer.sh --broker-list localhost:9092 --topic my-topic"
CONSUME = "bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic my-topic"
# For the test's patience alone: who is killed is missed after 6 seconds, not 45.
SOON = "--consumer-property session.timeout.ms=6000"


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

        producer = terminals.start_typing(PRODUCE)
        producer.type("first message", "second message")
        consumer = terminals.start(f"{CONSUME} --from-beginning")
        wait_until(
            lambda: sorted(consumer.lines) == ["first message", "second message"],
            "what was written before is read",
        )
        producer.type("third message")
        wait_until(lambda: "third message" in consumer.lines, "what is written now is read")
        assert len(consumer.lines) == 3
        consumer.end()

        # Three that share the work, one of which dies before anything came to most of its partitions.
        group = GroupReading(terminals, "mygroup", "localhost:9092")
        group.start(f"{CONSUME} --group mygroup {SOON}", 3)
        group.wait_for_offsets(13)
        few = [f"few {number}" for number in range(7)]
        producer.type(*few)
        group.wait_for_once(few)

        group.consumers[0].kill()
        many = [f"many {number}" for number in range(60)]
        producer.type(*many)
        group.wait_for_once(many)
        assert group.shares() == [6, 7]
        printed = [len([line for line in each.lines if "many" in line]) for each in group.consumers]
        # A consumer had four partitions at least before the third one was missed, and each of them got four lines at least.
        assert min(printed[1:]) >= 4 * 4, "lines without a key are spread over all partitions"
        producer.end()
        for each in group.consumers[1:]:
            each.end()
