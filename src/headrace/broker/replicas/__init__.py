"""The replicas that this broker hosts: which partitions, in which role, fetched from which leader, in which log directory.

Entry point: `replica_hosting.ReplicaHosting`. A partition's own state is left to `headrace.replication`.
"""
