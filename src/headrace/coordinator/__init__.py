"""Replicated state machines on internal topics: groups today, transactions beside them.

A core decides (`contract.Machine`), the rim acts (`runtime.Shard`). Entry point for the broker's APIs:
`headrace.coordinator.group.groups.Groups`. This package knows no socket, no metadata and no file:
its log is the `ShardLog` that the broker hands in.
"""
