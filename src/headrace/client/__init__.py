"""A small client of ours: brokers among themselves, administration, and Spark's executors speak through it.

`exchange` is what one connection knows, without a socket; `connection` drives it blocking, `async_connection` on the event loop
with many requests under way. On top of the blocking one, `cluster_metadata` knows the cluster and `retries` says when to ask
again. `librdkafka` is the other client, for programs that produce and consume single records. This package knows nothing of
the broker.
"""
