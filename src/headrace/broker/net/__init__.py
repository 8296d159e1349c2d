"""Connections of clients: listeners, sockets, frames, and the limits on memory and time that one connection may take.

Must not know: which API a frame is for, partitions, the cluster.
"""
