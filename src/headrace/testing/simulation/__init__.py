"""A whole cluster in one thread, repeatable from a seed: real logs, real replication, a real controller, under faults.

Entry points: `cluster.run_seed` plays one seed, `python -m headrace.testing.simulation` plays many. What is real and what is
not is said in docs/testing/simulation.md.
"""
