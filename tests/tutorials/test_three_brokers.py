"""The second of the classic tutorials, as printed: three brokers, a topic that survives one of them, a group that survives a member."""

import re
from pathlib import Path

from tests.support.terminals import Terminal, Terminals, printed, wait_until

BROKERS = "localhost:9093,localhost:9094,localhost:9095"
DESCRIBE = "bin/kafka-topics.sh --describe --topic my-failsafe-topic --zookeeper localhost:2181"
PARTITION = re.compile(
    r"\tTopic: my-failsafe-topic\tPartition: (\d+)\tLeader: (\d)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)"
)


def start_brokers(terminals: Terminals) -> dict[int, Terminal]:
    """From three files that differ in `broker.id`, `port` and `log.dirs`."""
    text = printed("config/server.properties")
    # What the file itself recommends for three brokers.
    text = text.replace("offsets.topic.replication.factor=1", "offsets.topic.replication.factor=3")
    started = {}
    for number, port in ((1, "9093"), (2, "9094"), (3, "9095")):
        own = re.sub(r"(?m)^broker\.id=.*$", f"broker.id={number}", text)
        own = re.sub(r"(?m)^log\.dirs=.*$", f"log.dirs=/tmp/kafka-logs-{number}", own)
        terminals.write(f"config/server.{number}.properties", f"{own}\nport={port}\n")
        started[number] = start_broker(terminals, number, port)
    return started


def start_broker(terminals: Terminals, number: int, port: str) -> Terminal:
    return terminals.start_broker(
        f"bin/kafka-server-start.sh config/server.{number}.properties", port
    )


def partitions(terminals: Terminals) -> list[tuple[int, set[str], set[str]]]:
    """Leader, replicas and ISR of each partition, as the tool prints them."""
    lines = terminals.run(DESCRIBE).splitlines()[1:]
    found = [PARTITION.match(line) for line in lines]
    assert all(found), lines
    return [
        (int(row[2]), set(row[3].split(",")), set(row[4].split(",")))
        for row in found
        if row is not None
    ]


def members(terminals: Terminals) -> list[int]:
    """How many partitions each member of the group has."""
    described = terminals.run(
        f"bin/kafka-consumer-groups.sh --bootstrap-server {BROKERS} --describe --group mygroup"
    )
    owners = [line.split()[6] for line in described.splitlines() if "my-failsafe-topic" in line]
    return sorted(owners.count(owner) for owner in set(owners) - {"-"})


class Reading:
    """The consumers of the group and what they have printed, all together."""

    def __init__(self, consumers: list[Terminal]) -> None:
        self.consumers = consumers

    @property
    def lines(self) -> list[str]:
        return sorted(line for consumer in self.consumers for line in consumer.lines)

    def wait_for(self, messages: list[str]) -> None:
        wait_until(
            lambda: set(messages) <= set(self.lines), f"{len(messages)} messages, {messages[-1]}"
        )


def test_a_topic_that_survives(tmp_path: Path) -> None:
    with Terminals(tmp_path) as terminals:
        terminals.start_zookeeper("bin/zookeeper-server-start.sh config/zookeeper.properties")
        brokers = start_brokers(terminals)
        created = terminals.run(
            "bin/kafka-topics.sh --create --zookeeper localhost:2181"
            " --replication-factor 3 --partitions 13 --topic my-failsafe-topic"
        )
        assert created == "Created topic my-failsafe-topic.\n"
        assert terminals.run(
            f"bin/kafka-topics.sh --create --bootstrap-server {BROKERS}"
            " --replication-factor 3 --partitions 13 --topic my-other-topic"
        ).endswith("Created topic my-other-topic.\n")
        everywhere = {"1", "2", "3"}
        assert [row[1:] for row in partitions(terminals)] == [(everywhere, everywhere)] * 13
        assert {row[0] for row in partitions(terminals)} == {1, 2, 3}

        producer = terminals.start(
            f"bin/kafka-console-producer.sh --broker-list {BROKERS} --topic my-failsafe-topic"
            " --property parse.key=true"
        )
        consume = (
            f"bin/kafka-console-consumer.sh --bootstrap-server {BROKERS} --topic my-failsafe-topic"
            " --from-beginning --consumer-property group.id=mygroup"
            " --consumer-property session.timeout.ms=6000"
        )
        reading = Reading([terminals.start(consume) for _ in range(3)])
        wait_until(lambda: members(terminals) == [4, 4, 5], "three members share the partitions")
        first = write(producer, "first", 60)
        reading.wait_for(first)
        assert reading.lines == sorted(first), "each message to one member of the group"
        assert all(consumer.lines for consumer in reading.consumers), "all three have work"

        reading.consumers[0].kill()
        wait_until(lambda: members(terminals) == [6, 7], "two members have taken over")
        second = write(producer, "second", 60)
        reading.wait_for(second)

        brokers[1].kill()
        wait_until(
            lambda: all(row[0] != 1 and row[2] == {"2", "3"} for row in partitions(terminals)),
            "new leaders, and the first broker out of the ISR",
        )
        assert all(row[1] == everywhere for row in partitions(terminals)), "it is still a replica"
        third = write(producer, "third", 60)
        reading.wait_for(third)

        start_broker(terminals, 1, "9093")
        wait_until(
            lambda: all(row[2] == everywhere for row in partitions(terminals)), "the ISR is full"
        )
        fourth = write(producer, "fourth", 60)
        reading.wait_for(fourth)
        assert set(reading.lines) == {*first, *second, *third, *fourth}
        producer.end()
        for consumer in reading.consumers[1:]:
            consumer.end()


def write(producer: Terminal, what: str, count: int) -> list[str]:
    messages = [f"{what} {number}" for number in range(count)]
    producer.type(*(f"{number}\t{message}" for number, message in enumerate(messages)))
    return messages
