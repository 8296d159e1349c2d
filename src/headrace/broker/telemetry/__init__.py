"""Counters of the traffic, loggers, the output of log records, and the HTTP endpoint. Any other part may use them.

The pages that the HTTP endpoint serves are in `broker.pages`, because they read from every part.
"""
