"""A broker loses one of its two disks and lives on: what it led there is led elsewhere, and nothing acknowledged is lost.

The directory's path becomes a plain file: what is open stays open, and everything by name fails, as on a disk that is gone.
"""

from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.cluster.load import Load
from tests.support.cluster_process import ClusterBroker, ClusterProcess

TOPIC = "orders"
PARTITIONS = 6
PROPERTIES = {
    # How soon a disk is noticed that nothing else is asked of.
    "log.flush.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "auto.leader.rebalance.enable": "false",
}


def disks_of(broker: ClusterBroker) -> tuple[Path, Path]:
    return broker.data_dir, broker.data_dir.with_name("second")


def partitions_in(directory: Path) -> set[int]:
    found = directory.glob(f"{TOPIC}-*")
    return {int(path.name.removeprefix(f"{TOPIC}-")) for path in found}


def offline_at(cluster: ClusterProcess, asked: int, broker_id: int) -> set[int]:
    """The partitions whose replica on a broker is offline, in the words of another."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    with Connection("127.0.0.1", cluster.brokers[asked].port) as connection:
        (topic,) = connection.send(request).topics
    return {
        partition.partition_index
        for partition in topic.partitions
        if broker_id in partition.offline_replicas
    }


@pytest.mark.parametrize("is_controller", [False, True])
def test_leaders_leave_a_failed_disk(tmp_path: Path, is_controller: bool) -> None:
    with ClusterProcess(tmp_path, properties=PROPERTIES) as cluster:
        for broker in cluster.brokers.values():
            broker.stop()
            broker.add_log_dir(disks_of(broker)[1])
            broker.start()
        cluster.wait_for_all_brokers()
        cluster.create_topic(TOPIC, partitions=PARTITIONS)
        victim = next(
            number
            for number in cluster.brokers
            if (number == cluster.controller()) == is_controller
        )
        other = next(number for number in cluster.brokers if number != victim)
        kept, failed = disks_of(cluster.brokers[victim])
        lost = partitions_in(failed)
        assert lost
        assert partitions_in(kept)
        with Load(cluster, TOPIC) as load:
            aside = failed.with_suffix(".gone")
            failed.rename(aside)
            failed.write_text("not a directory")
            cluster.wait_for(
                lambda: all(
                    (victim in view.isr) == (index not in lost) and view.leader in view.isr
                    for index, view in cluster.partitions(TOPIC).items()
                ),
                "the replicas on the failed disk are out of the ISR, and only they",
            )
            cluster.wait_for(
                lambda: offline_at(cluster, other, victim) == lost, "clients are told which"
            )
            load.wait_for_progress(50)
            # The disk is repaired, with what was on it.
            cluster.brokers[victim].stop()
            failed.unlink()
            aside.rename(failed)
            cluster.brokers[victim].start()
            cluster.wait_for_full_isr(TOPIC)
            assert offline_at(cluster, other, victim) == set()
            load.finish()
