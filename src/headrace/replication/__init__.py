"""Who may write to a partition, and how far its records count as committed.

Entry points: `partition.Partition` is a log in a role, `partition_table.PartitionTable` all those hosted here. Must not
know: requests, sockets, the coordination store.
"""
