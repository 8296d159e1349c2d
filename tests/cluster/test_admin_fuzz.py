"""Random admin operations while brokers are killed, stopped or paused and return: nobody ends by itself, all agree within seconds.

HEADRACE_ADMIN_FUZZ_ROUNDS asks for more rounds, each with a cluster and a seed of its own; HEADRACE_ADMIN_FUZZ_SEED is the seed
of the first. A failure names the seed. The seed decides what is asked for, not how it falls in time.
"""

import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from headrace.client.connection import Connection
from tests.cluster.admin_operations import AdminOperations, configure_one_broker
from tests.cluster.agreement import agreed_leaders, disagreement
from tests.differential.requests import batch, produce
from tests.support.cluster_process import SESSION_TIMEOUT_MS, ClusterProcess

ROUNDS = int(os.environ.get("HEADRACE_ADMIN_FUZZ_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("HEADRACE_ADMIN_FUZZ_SEED", "1"))
LOSSES = 3
CLIENTS = 3
AGREED_S = 40
PROPERTIES = {
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.threads": "1",
    "min.insync.replicas": "1",
}

_logger = logging.getLogger(__name__)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS), ids="seed-{}".format)
def test_brokers_agree_after_random_admin_operations(tmp_path: Path, seed: int) -> None:
    _logger.warning("HEADRACE_ADMIN_FUZZ_SEED=%d", seed)  # shown if it fails
    chance = Random(seed)
    with (
        ThreadPoolExecutor(CLIENTS) as threads,
        ClusterProcess(tmp_path, properties=PROPERTIES) as cluster,
    ):
        for loss in range(LOSSES):
            is_over = threading.Event()
            running = [
                threads.submit(AdminOperations(cluster, f"{seed}/{loss}/{each}", is_over).run)
                for each in range(CLIENTS)
            ]
            try:
                lose_and_return(cluster, chance)
                configure_one_broker(cluster, chance)
                time.sleep(chance.uniform(0, 2))
            finally:
                is_over.set()
            answered = [each.result(120) for each in running]
            assert min(answered) > 0, answered
            _logger.warning("%s requests were answered", answered)
            assert_all_run(cluster)
            wait_for_agreement(cluster)
            write_everywhere(cluster)
        assert_all_run(cluster)


def lose_and_return(cluster: ClusterProcess, chance: Random) -> None:
    """One broker is killed, stopped or paused, and comes back before or after it was missed."""
    time.sleep(chance.uniform(0, 1))
    victim = chance.choice(list(cluster.brokers.values()))
    (lose,) = chance.choices((victim.kill, victim.stop, victim.pause), (5, 2, 2))
    lose()
    time.sleep(chance.uniform(0, 2 * SESSION_TIMEOUT_MS / 1000))
    if victim.is_running:
        victim.resume()
    else:
        victim.start()


def assert_all_run(cluster: ClusterProcess) -> None:
    ended = [broker.broker_id for broker in cluster.brokers.values() if not broker.is_running]
    assert not ended, f"brokers {ended} ended by themselves"


def wait_for_agreement(cluster: ClusterProcess) -> None:
    since = time.monotonic()
    deadline = since + AGREED_S
    while (found := disagreement(cluster)) is not None:
        assert_all_run(cluster)
        assert time.monotonic() < deadline, f"no agreement within {AGREED_S} s: {found}"
        time.sleep(0.1)
    _logger.warning("agreed after %.1f s", time.monotonic() - since)


def write_everywhere(cluster: ClusterProcess) -> None:
    """Every partition takes a record that all its replicas have."""
    for where, (topic_id, leader) in agreed_leaders(cluster).items():
        with Connection("127.0.0.1", cluster.brokers[leader].port) as connection:
            request = produce(
                where.topic, batch(b"value"), topic_id=topic_id, partition=where.partition
            )
            answer = connection.send(request)
        error = answer.responses[0].partition_responses[0].error_code
        assert error == 0, f"acks=all to {where} of {topic_id}: error {error}"
