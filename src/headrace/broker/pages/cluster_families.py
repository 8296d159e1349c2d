"""What happened to the cluster, as counted by this broker (pure)."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from headrace.broker.cluster.cluster_counts import ClusterCounts
from headrace.broker.pages.exposition import single

_FAMILIES: Final = (
    (
        "kafka_server_replicamanager_isrshrinks_total",
        "isr_shrinks",
        "Times that a replica fell out of sync with a partition led here.",
    ),
    (
        "kafka_server_replicamanager_isrexpands_total",
        "isr_expands",
        "Times that a replica came back into sync with a partition led here.",
    ),
    (
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "unclean_elections",
        "Leaders that may lack records, elected by this controller.",
    ),
    (
        "kafka_server_sessionexpirelistener_zookeeperdisconnects_total",
        "session_disconnects",
        "Times that the connection to the coordination store was lost.",
    ),
    (
        "kafka_server_sessionexpirelistener_zookeeperexpires_total",
        "session_expires",
        "Sessions with the coordination store that ended while the broker ran.",
    ),
    (
        "kafka_server_sessionexpirelistener_zookeepersyncconnects_total",
        "session_connects",
        "Times that the connection to the coordination store came back.",
    ),
)


def cluster_count_families(counts: ClusterCounts) -> Iterator[str]:
    """Counters since the start."""
    for name, attribute, text in _FAMILIES:
        yield from single(name, "counter", text, attrgetter(attribute)(counts))
