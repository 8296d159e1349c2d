"""Three brokers with replication factor 3: produce with acks all, failover after kill -9, a controlled restart."""

import time
from pathlib import Path

from bench.beside_kafka import topics
from bench.beside_kafka.clusters import SESSION_TIMEOUT_MS, Cluster
from bench.beside_kafka.librdkafka import Messages
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.prober import Prober
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.runs.produce import produce
from headrace.client.connection import Connection

ABOUT = "3 brokers, replication factor 3: throughput, failover, controlled restart"

TOPIC = "cluster"
RECORDS = 250_000
WARM_UP_RECORDS = 200_000
PARTITIONS = 3
REPLICATION = 3
PATIENCE_S = SESSION_TIMEOUT_MS / 1000 * 5
PROBES_AROUND = 50
_SETTINGS = {"acks": "all"}


def measure_life(server: str, directory: Path, notebook: Notebook, size: Size) -> None:
    cluster = Cluster(server, directory)
    try:
        cluster.start()
        _throughput(cluster, notebook, size)
        topics.create(cluster.port, TOPIC, replication_factor=REPLICATION)
        notebook.note("cluster failover", {"s": _failover(cluster)})
        _wait_for_full_isr(cluster)
        notebook.note("cluster controlled restart", {"s": _controlled_restart(cluster)})
    finally:
        cluster.discard()


def _throughput(cluster: Cluster, notebook: Notebook, size: Size) -> None:
    messages = Messages(payloads(1024), 10_000)
    for records in (WARM_UP_RECORDS, RECORDS):
        figures = produce(
            cluster,
            messages,
            size.count(records),
            _SETTINGS,
            partitions=PARTITIONS,
            replication_factor=REPLICATION,
        )
    notebook.note("cluster produce 1 KiB acks=all", figures)


def _prober(cluster: Cluster) -> Prober:
    return Prober({number: node.port for number, node in cluster.nodes.items()}, TOPIC)


def _failover(cluster: Cluster) -> float:
    """Kill the leader; how long nobody took records. It is started again afterwards."""
    with _prober(cluster) as prober:
        prober.wait_for(PROBES_AROUND, PATIENCE_S)
        killed, began = prober.leader, time.monotonic()
        cluster.nodes[killed].kill()
        prober.wait_for(PROBES_AROUND, PATIENCE_S, other_than=killed)
        gap_s = prober.longest_gap_s(began)
    cluster.nodes[killed].start()
    return gap_s


def _controlled_restart(cluster: Cluster) -> float:
    """Ask the leader to end, start it again; the longest time in which nobody took records."""
    with _prober(cluster) as prober:
        prober.wait_for(PROBES_AROUND, PATIENCE_S)
        node, began = cluster.nodes[prober.leader], time.monotonic()
        node.stop()
        node.start()
        _wait_for_full_isr(cluster)
        prober.wait_for(PROBES_AROUND, PATIENCE_S)
        return prober.longest_gap_s(began)


def _wait_for_full_isr(cluster: Cluster) -> None:
    deadline = time.monotonic() + PATIENCE_S * 2
    with Connection("127.0.0.1", cluster.port) as connection:
        while len(topics.partitions_of(connection, TOPIC)[0].isr_nodes) < REPLICATION:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{TOPIC}: the restarted broker is not in sync")
            time.sleep(0.05)
