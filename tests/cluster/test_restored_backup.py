"""A backup of ZooKeeper is restored, and a broker that has fallen behind since is started first.

It leads, because it is in the ISR of the backup. The others keep what they know to be committed, say so, and an operator can
have the partition led by one of them.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer

from tests.cluster.replicas import differences, stored_batches
from tests.support.cluster_process import ClusterProcess
from tests.support.server_process import free_port

TOPIC = "orders"
BEHIND = 3
COMPLETE = (1, 2)
BEFORE, SINCE = 30, 20  # records


def produce(cluster: ClusterProcess, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for _ in range(count):
        producer.produce(TOPIC, b"value", partition=0)
    assert producer.flush(30) == 0


def end_offset(cluster: ClusterProcess, broker_id: int) -> int:
    return stored_batches(cluster.brokers[broker_id].log_of(f"{TOPIC}-0"))[-1].next_offset


def elect_uncleanly(cluster: ClusterProcess) -> None:
    command = [
        *(sys.executable, "-m", "headrace.cli.main", "leader-election"),
        *("--bootstrap-server", f"127.0.0.1:{cluster.brokers[1].port}"),
        *("--election-type", "unclean", "--topic", TOPIC, "--partition", "0"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@pytest.mark.timeout(240)
def test_replicas_keep_what_they_know_to_be_committed(tmp_path: Path) -> None:
    http_port = free_port()
    with ClusterProcess(tmp_path / "cluster") as cluster:
        complete = [cluster.brokers[each] for each in COMPLETE]
        cluster.brokers[1].set(**{"headrace.http.listeners": f"http://127.0.0.1:{http_port}"})
        cluster.create_topic(TOPIC, replicas=[[1, 2, 3]], config={"min.insync.replicas": "2"})
        produce(cluster, BEFORE)
        zookeeper = cluster.zookeepers[0]
        zookeeper.kill()
        backup = shutil.copytree(zookeeper.data_dir, tmp_path / "backup")
        zookeeper.start()
        cluster.wait_for_full_isr(TOPIC)

        cluster.brokers[BEHIND].stop()
        produce(cluster, SINCE)
        for broker in complete:
            broker.stop()
        zookeeper.kill()
        shutil.rmtree(zookeeper.data_dir)
        shutil.copytree(backup, zookeeper.data_dir)
        zookeeper.start()

        cluster.brokers[BEHIND].start()
        cluster.wait_for(
            lambda: cluster.partitions_seen_by(BEHIND, TOPIC)[0].leader == BEHIND,
            "the broker that is behind leads",
        )
        for broker in complete:
            broker.start()
        refusal = f"{TOPIC}-0 does not follow broker {BEHIND}"
        cluster.wait_for(
            lambda: all(refusal in broker.log_tail() for broker in complete),
            "the others refuse their leader",
        )
        with urlopen(f"http://127.0.0.1:{http_port}/healthz") as page:
            (reason,) = json.loads(page.read())["reasons"]
        assert refusal in reason
        assert [end_offset(cluster, each) for each in (1, 2, 3)] == [50, 50, 30]

        cluster.brokers[BEHIND].stop()
        cluster.wait_for(
            lambda: cluster.partitions_seen_by(1, TOPIC)[0].leader != BEHIND, "it leads no more"
        )
        if cluster.partitions_seen_by(1, TOPIC)[0].leader == -1:
            elect_uncleanly(cluster)
        cluster.brokers[BEHIND].start()
        cluster.wait_for_full_isr(TOPIC)
        produce(cluster, 10)
        cluster.stop_brokers()
        logs = {str(each): cluster.brokers[each].log_of(f"{TOPIC}-0") for each in (1, 2, 3)}
        assert differences(logs, BEFORE + SINCE + 10) == []
