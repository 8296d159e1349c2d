"""The second of the classic tutorials, as printed: three brokers, a topic that survives one of them, a group that survives a member."""

import re
from pathlib import Path

from tests.support.group_reading import GroupReading
from tests.support.terminals import Terminal, Terminals, TypedTerminal, printed, wait_until

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

        producer = terminals.start_typing(
            f"bin/kafka-console-producer.sh --broker-list {BROKERS} --topic my-failsafe-topic"
            " --property parse.key=true"
        )
        consume = (
            f"bin/kafka-console-consumer.sh --bootstrap-server {BROKERS} --topic my-failsafe-topic"
            " --from-beginning --consumer-property group.id=mygroup"
            " --consumer-property session.timeout.ms=6000"
        )
        group = GroupReading(terminals, "mygroup", BROKERS)
        group.start(consume, 3)
        assert group.shares() == [4, 4, 5]
        first = write(producer, "first", 60)
        group.wait_for_once(first)
        assert all(consumer.lines for consumer in group.consumers), "all three have work"
        group.wait_for_offsets(13)

        group.consumers[0].kill()
        wait_until(lambda: group.shares() == [6, 7], "two members have taken over")
        second = write(producer, "second", 60)
        group.wait_for_once(second)

        brokers[1].kill()
        wait_until(
            lambda: all(row[0] != 1 and row[2] == {"2", "3"} for row in partitions(terminals)),
            "new leaders, and the first broker out of the ISR",
        )
        assert all(row[1] == everywhere for row in partitions(terminals)), "it is still a replica"
        third = write(producer, "third", 60)
        group.wait_for(third)

        start_broker(terminals, 1, "9093")
        wait_until(
            lambda: all(row[2] == everywhere for row in partitions(terminals)), "the ISR is full"
        )
        fourth = write(producer, "fourth", 60)
        group.wait_for(fourth)
        assert set(group.counts) == {*first, *second, *third, *fourth}
        producer.end()
        for consumer in group.consumers[1:]:
            consumer.end()


def write(producer: TypedTerminal, what: str, count: int) -> list[str]:
    messages = [f"{what} {number}" for number in range(count)]
    producer.type(*(f"{number}\t{message}" for number, message in enumerate(messages)))
    return messages
