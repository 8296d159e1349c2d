"""Names of the topics that brokers keep for themselves.

A key's hash modulo the number of partitions says which partition of a coordinator's topic holds the key
(`coordinator.partitioning`), so these topics never grow, and only brokers write to them.
"""

from typing import Final

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"

# Topics of coordinators: marked as internal in metadata.
INTERNAL_TOPICS: Final = frozenset((CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE))

# Kafka's log of the controller's changes. Headrace has no such topic; its name stays reserved.
CLUSTER_METADATA: Final = "__cluster_metadata"
