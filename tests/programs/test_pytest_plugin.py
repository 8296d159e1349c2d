"""What one test does to the fixtures' brokers, the next one does not see: each test here finds what a new broker is."""

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import (
    ConfigSource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.testing.embedded_cluster import EmbeddedCluster
from headrace.wire.refusal import Refusal

ALTERED = {
    (ResourceType.BROKER, "1"): ("log.retention.ms", "60000"),
    (ResourceType.BROKER, ""): ("message.max.bytes", "2000"),
    (ResourceType.TOPIC, "orders"): ("max.message.bytes", "3000"),
    (ResourceType.GROUP, "readers"): ("consumer.session.timeout.ms", "50000"),
}
DYNAMIC = (
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ConfigSource.DYNAMIC_GROUP_CONFIG,
)
# As a user's tests would do; pytest runs it in another process.
STOPPING = """
def test_first(headrace_broker):
    headrace_broker.stop()

def test_second(headrace_broker):
    headrace_broker.create_topic("orders")

def test_third(headrace_broker):
    headrace_broker.kill()
"""


def alter(bootstrap_servers: str) -> None:
    with Admin(bootstrap_servers) as admin:
        for (kind, name), (key, value) in ALTERED.items():
            alter_configs(admin, kind, name, add={key: value})


def altered(bootstrap_servers: str) -> dict[str, str | None]:
    """The settings that are not as broker 1 was started with, by what the broker says of itself."""
    found = {}
    with Admin(bootstrap_servers) as admin:
        for kind, name in ((ResourceType.BROKER, "1"), (ResourceType.GROUP, "readers")):
            entries = describe_configs(admin, kind, [name])[name]
            assert not isinstance(entries, Refusal)
            for each in entries:
                if each.source in DYNAMIC:
                    found[each.name] = each.value
    return found


@pytest.mark.parametrize("harm", ["alter", "stop", "kill", "wipe", "remove_data", "nothing"])
def test_every_test_finds_a_new_broker(headrace_broker: EmbeddedBroker, harm: str) -> None:
    address = headrace_broker.bootstrap_servers
    assert altered(address) == {}
    headrace_broker.create_topic("orders", 3)
    if harm == "alter":
        alter(address)
        assert len(altered(address)) == 3
    elif harm in ("stop", "kill"):
        getattr(headrace_broker, harm)()
    elif harm != "nothing":
        headrace_broker.stop()
        getattr(headrace_broker, harm)()


@pytest.mark.parametrize("harm", ["alter", "stop", "nothing"])
def test_every_test_finds_a_new_cluster(headrace_cluster: EmbeddedCluster, harm: str) -> None:
    address = headrace_cluster.bootstrap_servers
    assert set(headrace_cluster.running) == {1, 2, 3}
    assert altered(address) == {}
    headrace_cluster.create_topic("orders", 3)
    if harm == "alter":
        alter(address)
    elif harm == "stop":
        for broker_id in headrace_cluster.brokers:
            headrace_cluster.brokers[broker_id].kill()


def test_a_session_ends_well_after_its_broker_was_stopped(tmp_path: Path) -> None:
    file = tmp_path / "test_stopping.py"
    file.write_text(STOPPING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
