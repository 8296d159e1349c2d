"""The coordinators that run on this broker: partitions of internal topics as the logs of their shards.

What a coordinator decides is left to `headrace.coordinator`.
"""
