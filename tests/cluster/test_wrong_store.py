"""A broker whose log directories belong to a cluster does not start with the store of another, or of none, and changes nothing."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

from confluent_kafka import Consumer, Producer

from headrace.coordination.membership import known_cluster_id
from headrace.coordination.zookeeper import ZooKeeperStore
from tests.support.broker import write_properties
from tests.support.cluster_process import ClusterProcess
from tests.support.headrace_process import HeadraceProcess
from tests.support.server_process import free_port

TOPIC = "orders"
_IDEMPOTENT = {"enable.idempotence": True, "log_level": 0}


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def refused_start(directory: Path, properties: dict[str, str]) -> str:
    """What a broker says that does not start."""
    path = directory / "refused.properties"
    write_properties(path, {"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}", **properties})
    ended = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", "server-start", str(path)],
        env=dict(os.environ),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    return ended.stdout + ended.stderr


async def nodes_below(connect: str) -> list[str]:
    store = ZooKeeperStore(connect)
    await store.open()
    try:
        assert await known_cluster_id(store) is None
        return await store.children("/")
    finally:
        await store.close()


def produced(broker: HeadraceProcess, count: int) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}", **_IDEMPOTENT})
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number, partition=number % 3)
    assert producer.flush(20) == 0


def consumed(broker: HeadraceProcess) -> list[bytes]:
    """What a group has not read yet; it commits what it reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([TOPIC])
    values: list[bytes] = []
    ends = 0
    while ends < 3:
        message = consumer.poll(20)
        assert message is not None
        if message.error() is not None:
            ends += 1
        else:
            values.append(message.value() or b"")
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def test_a_lost_store_is_made_anew_from_the_logs(tmp_path: Path) -> None:
    broker = HeadraceProcess(tmp_path / "alone", properties={"num.partitions": "3"})
    with broker:
        produced(broker, 30)
        assert len(consumed(broker)) == 30
        produced(broker, 6)
        broker.kill()
    (broker.data_dir / "coordination.sqlite").unlink()
    for rest in broker.data_dir.glob("coordination.sqlite-*"):
        rest.unlink()
    config = str(tmp_path / "alone" / "server.properties")
    recover = [sys.executable, "-m", "headrace.cli.main", "storage", "recover", "--config", config]
    unsure = subprocess.run(recover, check=False, capture_output=True, text=True, timeout=60)
    assert unsure.returncode == 1
    assert "set zookeeper.connect" in unsure.stderr
    assert not list(broker.data_dir.glob("coordination.*"))
    recover.append("--without-zookeeper")
    told = subprocess.run(recover, check=True, capture_output=True, text=True, timeout=60).stdout
    assert f"{TOPIC}: 3 partitions" in told
    assert "retention.ms=-1" in told
    again = subprocess.run(recover, check=False, capture_output=True, text=True, timeout=60)
    assert again.returncode == 1
    assert "nothing to recover" in again.stderr
    with broker:
        produced(broker, 3)
        assert len(consumed(broker)) == 9, "the offsets that the group committed are known"
    assert not list(broker.data_dir.glob("*-stray"))


def test_a_restored_backup_of_the_store_costs_no_acknowledged_record(tmp_path: Path) -> None:
    """Leader epochs and producer ids of the backup are behind those of the logs."""
    broker = HeadraceProcess(tmp_path / "alone", properties={"num.partitions": "3"})
    store, backup = broker.data_dir / "coordination.sqlite", tmp_path / "backup.sqlite"
    with broker:
        produced(broker, 30)
    copyfile(store, backup)
    for _ in range(3):
        with broker:
            produced(broker, 30)
    copyfile(backup, store)
    with broker:
        produced(broker, 60)
        broker.kill()
    with broker:
        assert len(consumed(broker)) == 180


def test_another_chroot_or_another_cluster(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, brokers=1, chroot="/right") as cluster:
        cluster.create_topic(TOPIC, replication_factor=1)
        broker = cluster.brokers[1]
        broker.stop()
        before = contents(broker.data_dir)
        server = f"127.0.0.1:{cluster.zookeepers[0].port}"
        own = {"broker.id": "1", "log.dirs": str(broker.data_dir)}

        told = refused_start(tmp_path, {**own, "zookeeper.connect": f"{server}/wrong"})
        assert "belong to the cluster" in told
        assert "holds no cluster" in told
        assert "zookeeper.connect" in told
        assert contents(broker.data_dir) == before
        assert "wrong" not in asyncio.run(nodes_below(server)), "the path has been made"

        other = cluster.brokers[1].data_dir.parent / "other"
        with HeadraceProcess(
            tmp_path / "other",
            properties={"zookeeper.connect": f"{server}/other", "log.dirs": str(other)},
        ):
            pass
        told = refused_start(tmp_path, {**own, "zookeeper.connect": f"{server}/other"})
        assert "holds the cluster" in told
        assert contents(broker.data_dir) == before

        told = refused_start(
            tmp_path,
            {**own, "broker.id": "2", "zookeeper.connect": f"{server}/right"},
        )
        assert "node.id is 1, this broker has 2" in told
        assert contents(broker.data_dir) == before

        broker.add_log_dir(tmp_path / "new-disk")  # a new directory beside one with an identity
        broker.start()
        cluster.wait_for_full_isr(TOPIC)
        assert not list(broker.data_dir.glob("*-stray"))


def test_a_lost_file_of_the_embedded_store(tmp_path: Path) -> None:
    broker = HeadraceProcess(tmp_path / "alone")
    with broker:
        pass
    store = broker.data_dir / "coordination.sqlite"
    kept = tmp_path / "kept.sqlite"
    store.rename(kept)
    for rest in broker.data_dir.glob("coordination.sqlite-*"):
        rest.unlink()
    before = contents(broker.data_dir)
    own = {"broker.id": "1", "log.dirs": str(broker.data_dir)}
    told = refused_start(tmp_path, own)
    assert "coordination.sqlite holds no cluster" in told
    assert contents(broker.data_dir) == before
    (broker.data_dir / "meta.properties").rename(tmp_path / "meta.properties")
    assert "belong to the cluster" in refused_start(tmp_path, own), "the marker of the clean stop"
    (tmp_path / "meta.properties").rename(broker.data_dir / "meta.properties")
    kept.rename(store)
    with broker:
        pass
