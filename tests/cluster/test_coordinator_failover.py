"""A consumer group whose coordinator dies: what was committed stays committed, and the group goes on elsewhere."""

from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer

from tests.support.cluster_process import ClusterProcess

TOPIC, GROUP = "read-in-groups", "readers"


def consumer(cluster: ClusterProcess) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
    made.subscribe([TOPIC])
    return made


def read(cluster: ClusterProcess, reader: Consumer, count: int) -> list[int]:
    found: list[int] = []

    def enough() -> bool:
        for message in reader.consume(count - len(found), timeout=0.2):
            value = message.value()
            if message.error() is None:
                assert isinstance(value, bytes)
                found.append(int(value))
        return len(found) == count

    cluster.wait_for(enough, f"{count} records read")
    return found


def commit(cluster: ClusterProcess, reader: Consumer) -> None:
    def committed() -> bool:
        try:
            reader.commit(asynchronous=False)
        except KafkaException:
            return False
        return True

    cluster.wait_for(committed, "the offsets are committed")


def coordinator(cluster: ClusterProcess) -> int:
    admin = cluster.admin()
    described = admin.describe_consumer_groups([GROUP], request_timeout=20)[GROUP].result(30)
    return int(described.coordinator.id)


def test_committed_offsets_survive_their_coordinator(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
        for number in range(100):
            producer.produce(TOPIC, str(number), partition=0)
        assert producer.flush(20) == 0

        reader = consumer(cluster)
        assert read(cluster, reader, 60) == list(range(60))
        commit(cluster, reader)
        victim = coordinator(cluster)
        cluster.brokers[victim].kill()
        # Another member takes over from the same place, though the first never left.
        reader.close()
        reader = consumer(cluster)
        assert read(cluster, reader, 20) == list(range(60, 80))
        commit(cluster, reader)
        assert coordinator(cluster) != victim
        reader.close()
        cluster.brokers[victim].start()
        reader = consumer(cluster)
        assert read(cluster, reader, 20) == list(range(80, 100))
        reader.close()
