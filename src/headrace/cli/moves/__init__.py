"""Moves of replicas: plans, steps and progress of `headrace reassign-partitions`."""
