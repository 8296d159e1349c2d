"""Decisions about the whole cluster, taken by the one broker that holds the controllership.

Entry points: `driver.ControllerDriver` (the rim: controllership, queue, store) and `cluster_state.ClusterState`
(what a cluster looks like; every broker keeps a copy fed by the controller's changes). All between
them is pure: an event is decided upon, its writes are made, and only then does the state change.
"""
