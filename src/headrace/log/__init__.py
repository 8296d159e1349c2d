"""One partition on disk, in Kafka's own format. Synchronous; a log has one owner and no locks.

Entry points: `log_dirs.LogDirs` holds all logs of a broker, `recovery.open_log` opens one, `partition_log.PartitionLog`
is one. Must not know: sockets, the event loop, the clock (`now_ms` is a parameter), who leads.
"""
