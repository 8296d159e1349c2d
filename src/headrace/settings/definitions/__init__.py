"""Every setting that Headrace knows, as tables: one row a setting, one module a concern.

`BROKER` are the broker's settings in force; `UNLISTED` are those that DescribeConfigs lists only where they are
set: names that Kafka 4.3 dropped and files still carry, and the authorizer's; `TOPIC`, `GROUP` and `CLIENT_METRICS` belong to single topics, groups, subscriptions.
Nothing here reads a value: that is done one level up.
"""

from types import MappingProxyType
from typing import Final

from headrace.settings.definitions import (
    authorizer,
    client_metrics,
    cluster,
    former,
    group,
    groups,
    headrace_own,
    log,
    network,
    quotas,
    remote_storage,
    replication,
    sasl,
    share_groups,
    tls,
    topic,
    transactions,
)
from headrace.settings.definitions.setting import Setting

CONCERNS: Final = (
    ("Cluster", cluster.SETTINGS),
    ("Network", network.SETTINGS),
    ("Log", log.SETTINGS),
    ("Replication", replication.SETTINGS),
    ("Groups", groups.SETTINGS),
    ("Share groups", share_groups.SETTINGS),
    ("Transactions", transactions.SETTINGS),
    ("Quotas", quotas.SETTINGS),
    ("TLS", tls.SETTINGS),
    ("Authentication and authorization", sasl.SETTINGS),
    ("Remote storage", remote_storage.SETTINGS),
    ("Headrace's own", headrace_own.SETTINGS),
)


def _by_name(*tables: tuple[Setting, ...]) -> MappingProxyType[str, Setting]:
    return MappingProxyType({setting.name: setting for table in tables for setting in table})


UNLISTED: Final = _by_name(former.SETTINGS, authorizer.SETTINGS)
BROKER: Final = _by_name(*(table for _, table in CONCERNS))
TOPIC: Final = _by_name(topic.CONFIGS)
GROUP: Final = _by_name(group.CONFIGS)
CLIENT_METRICS: Final = _by_name(client_metrics.CONFIGS)
