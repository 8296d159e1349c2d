"""Virtual machines for whole programs: time, event loops, network and ZooKeeper in one thread, all chance from one seed.

A program that takes its event loop from `asyncio` and everything else from its construction runs here unchanged. Owns no
invariant and no fault plan: `headrace.testing.simulation` draws those.
"""
