"""Bytes to messages and back: Kafka's protocol without a socket.

`messages/` holds one class per struct for all versions, `codec` turns them into bytes of one version
and back, `framing` and `headers` carry them. Produce and Fetch have codecs by hand, because they are
the hot path. Nothing here knows a connection, a clock, or a broker.
"""
