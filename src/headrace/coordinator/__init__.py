"""Replicated state machines on internal topics: groups today, transactions beside them.

A core decides (`contract.Machine`), a `shard.Shard` runs it on one partition, a `runtime.CoordinatorRuntime` holds the shards
of one kind of coordinator. Entry point for the broker's APIs: `headrace.coordinator.group.groups.Groups`. This package knows
no socket, no metadata and no file: its log is the `ShardLog` that the broker hands in.
"""
