"""The classic group protocol: join, sync, heartbeat, leave, rebalance, static members. Pure."""
