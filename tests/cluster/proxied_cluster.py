"""A cluster of real processes with a TCP proxy of our own on each link that a test wants to break.

Every broker reaches ZooKeeper through a proxy of its own, and the other brokers reach it through another: its listener for brokers
is advertised at the proxy. Clients reach the brokers directly.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.cluster_process import SESSION_TIMEOUT_MS, ClusterProcess
from tests.support.server_process import free_port
from tests.support.tcp_proxy import TcpProxy


class ProxiedCluster(ClusterProcess):
    """`to_zookeeper` and `to_broker` are the proxies, by broker."""

    to_zookeeper: dict[int, TcpProxy]
    to_broker: dict[int, TcpProxy]


@contextmanager
def proxied_cluster(
    directory: Path,
    *,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
    properties: Mapping[str, str] | None = None,
) -> Iterator[ProxiedCluster]:
    cluster = ProxiedCluster(
        directory, session_timeout_ms=session_timeout_ms, properties=properties
    )
    with ExitStack() as stack:
        (zookeeper,) = cluster.zookeepers
        cluster.to_zookeeper, cluster.to_broker = {}, {}
        for number, broker in cluster.brokers.items():
            inside_port = free_port()
            outside = f"CLIENTS://127.0.0.1:{broker.port}"
            store = stack.enter_context(TcpProxy(zookeeper.port))
            link = stack.enter_context(TcpProxy(inside_port))
            cluster.to_zookeeper[number], cluster.to_broker[number] = store, link
            broker.set(
                zookeeper_connect=f"127.0.0.1:{store.port}",
                listeners=f"{outside},BROKERS://127.0.0.1:{inside_port}",
                advertised_listeners=f"{outside},BROKERS://127.0.0.1:{link.port}",
                listener_security_protocol_map="CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
                inter_broker_listener_name="BROKERS",
            )
        yield stack.enter_context(cluster)
