"""The tree of versioned nodes that a cluster agrees on.

Entry point: `store.Store`, served by `embedded.EmbeddedStore` (SQLite, one broker) or by
`zookeeper.ZooKeeperStore` (a real ensemble). `nodes` says what stands at which path; `membership`
is how a broker joins. Nothing here decides anything about the cluster: that is `controller/`.
"""
