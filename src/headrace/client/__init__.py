"""A small client of ours: brokers among themselves, tools, and Spark's executors speak through it.

`exchange` is what one connection knows, without a socket; `connection` drives it blocking,
`async_connection` on the event loop with many requests under way. It knows nothing of the broker.
"""
