"""Configs in the store that cannot be read, as a broker finds them when it opens its logs."""

import pytest

from headrace.broker.main import _configs_in
from headrace.coordination.nodes import ConfigNode
from headrace.coordination.store import Node


def test_an_unreadable_config_costs_itself_only(caplog: pytest.LogCaptureFixture) -> None:
    nodes = {
        "/config/topics": Node(b"", 0, 1),
        "/config/topics/good": Node(ConfigNode({"cleanup.policy": "compact"}).encode(), 0, 1),
        "/config/topics/bad": Node(b"garbage", 0, 1),
        "/config/brokers/1": Node(b'{"version":9}', 0, 1),
    }
    assert _configs_in(nodes) == {
        ("topics", "good"): {"cleanup.policy": "compact"},
        # Its records stay until somebody has mended the node.
        ("topics", "bad"): {"retention.ms": "-1", "retention.bytes": "-1"},
    }
    assert "/config/topics/bad" in caplog.text
    assert "/config/brokers/1" in caplog.text
