"""The cluster as this broker sees it: cluster view, the link to the controller, other brokers, topics that are created on demand.

Decisions about the cluster are left to `headrace.controller`.
"""
