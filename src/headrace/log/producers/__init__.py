"""Producers of one log: state for idempotence and transactions, its snapshots, and its replay from batches."""
