"""kill -9 of the leader of `_schemas` below a registry loses no registration that was acknowledged.

`HEADRACE_REGISTRY_KILLS=50` kills brokers fifty times.
"""

import os
import time
from pathlib import Path

import pytest

from tests.registry.registrations import Acknowledged, Writer, check
from tests.support.cluster_process import ClusterProcess
from tests.support.registry_process import RegistryProcess

ROUNDS = int(os.environ.get("HEADRACE_REGISTRY_KILLS", "2"))
WRITERS = 2


def acknowledged_by(writers: list[Writer]) -> int:
    return sum(len(writer.acknowledged) for writer in writers)


@pytest.mark.timeout(240 + 90 * ROUNDS)
def test_kills_of_brokers_lose_nothing(tmp_path: Path) -> None:
    with (
        ClusterProcess(tmp_path / "cluster") as cluster,
        RegistryProcess(tmp_path, cluster.bootstrap) as registry,
    ):
        registry.await_primary()
        registry.ask("PUT", "/config", {"compatibility": "NONE"})
        writers = [Writer(number, [registry]) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(ROUNDS):
                broker = cluster.brokers[cluster.leader("_schemas")]
                broker.kill()
                before, deadline = acknowledged_by(writers), time.monotonic() + 75
                while acknowledged_by(writers) <= before + WRITERS:
                    assert time.monotonic() < deadline, registry.log_tail()
                    time.sleep(0.05)
                broker.start()
                cluster.wait_for_full_isr(None)
        finally:
            for writer in writers:
                writer.end()
        acknowledged: Acknowledged = {}
        for writer in writers:
            acknowledged |= writer.acknowledged
        check(registry, acknowledged)
        # What was acknowledged is in the topic, too, and not only in this process.
        registry.kill()
        registry.start()
        check(registry, acknowledged)
