"""What only kcat shows: its listing of a cluster as JSON."""

import json
import subprocess

from tests.conformance.conftest import MakeTopic
from tests.support import tools
from tests.support.broker import BrokerUnderTest


def test_the_cluster_is_listed(
    broker: BrokerUnderTest, address: str, make_topic: MakeTopic
) -> None:
    topic = make_topic("listed-by-kcat", partitions=2)
    command = [str(tools.require("kcat")), "-b", address, "-L", "-J", "-t", topic]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=30).stdout)
    assert sorted(listed["brokers"], key=lambda each: each["id"]) == [
        {"id": number, "name": f"127.0.0.1:{port}"} for number, port in broker.ports.items()
    ]
    assert listed["controllerid"] in broker.ports
    [found] = listed["topics"]
    assert found["topic"] == topic
    assert [partition["partition"] for partition in found["partitions"]] == [0, 1]
    for partition in found["partitions"]:
        assert partition["leader"] == partition["replicas"][0]["id"]
        assert sorted(each["id"] for each in partition["replicas"]) == sorted(broker.ports)
        assert sorted(each["id"] for each in partition["isrs"]) == sorted(broker.ports)
