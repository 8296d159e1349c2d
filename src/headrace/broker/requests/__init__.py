"""The way of a request from a frame to its answer: dispatch, the request context that APIs see, request metrics.

What a request means is left to `broker.apis`.
"""
