"""`--zookeeper`, as older tutorials print it: which brokers a ZooKeeper knows, so that they can be asked instead.

Nothing is written, not even the chroot.
"""

import asyncio
import logging

from headrace.cli.shell.command_line import Failure
from headrace.coordination.nodes import BrokerNode
from headrace.coordination.store import NoNode, StoreFailed
from headrace.coordination.zookeeper import ZooKeeperStore

PATIENCE_MS = 5_000


def brokers_of(connect: str) -> str:
    """The living brokers of the cluster at `host:port,…/chroot`, as bootstrap servers. Raises Failure."""
    logging.getLogger("kazoo").disabled = True  # it would print each attempt
    logging.getLogger("kazoo.client").disabled = True
    hosts, slash, chroot = connect.partition("/")
    try:
        addresses = asyncio.run(_addresses(hosts, (slash + chroot).rstrip("/")))
    except StoreFailed as failed:
        raise Failure(
            f"cannot reach a ZooKeeper at {hosts}",
            why=str(failed.__cause__ or failed),
            hint="start one with 'headrace zookeeper-start', or name a broker: --bootstrap-server localhost:9092",
        ) from failed
    if not addresses:
        raise Failure(
            f"the ZooKeeper at {connect} knows no living broker",
            hint="start one whose settings say zookeeper.connect, or check the path behind the port",
        )
    return ",".join(addresses)


async def _addresses(hosts: str, chroot: str) -> list[str]:
    store = ZooKeeperStore(hosts, connection_timeout_ms=PATIENCE_MS)
    await store.open()
    root = chroot + BrokerNode.ROOT
    found = []
    try:
        for name in await store.children(root):
            node = await store.get(f"{root}/{name}")
            if node is not None:  # it may have left in between
                found += _plaintext_addresses(BrokerNode.decode(int(name), node.data))
    except NoNode:
        pass
    finally:
        await store.close()
    return found


def _plaintext_addresses(broker: BrokerNode) -> list[str]:
    addresses = []
    for endpoint in broker.endpoints:
        listener, _, address = endpoint.partition("://")
        if broker.listener_security_protocol_map.get(listener) == "PLAINTEXT":
            addresses.append(address)
    return addresses
