"""Replication of partitions: roles, in-sync replicas and the high watermark of each replica on this broker.

Entry points: `partition.Partition` is a log in a role, `partition_table.PartitionTable` has all hosted partitions. Must not
know: requests, sockets, the coordination store.
"""
