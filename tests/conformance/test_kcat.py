"""What only kcat shows: its listing of a cluster as JSON."""

import json
import subprocess

from tests.conformance.conftest import MakeTopic
from tests.support import tools
from tests.support.broker import Broker


def test_the_cluster_is_listed(broker: Broker, address: str, make_topic: MakeTopic) -> None:
    topic = make_topic("listed-by-kcat", partitions=2)
    command = [str(tools.require("kcat")), "-b", address, "-L", "-J", "-t", topic]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=30).stdout)
    assert listed["brokers"] == [{"id": 1, "name": address}]
    assert listed["controllerid"] == 1
    [found] = listed["topics"]
    assert found["topic"] == topic
    assert found["partitions"] == [
        {"partition": number, "leader": 1, "replicas": [{"id": 1}], "isrs": [{"id": 1}]}
        for number in range(2)
    ]
