"""The pages of the HTTP endpoint: /metrics in Prometheus' text format, with one module per family, and /healthz.

Everything is read when a page is asked for. Nothing here is called by the paths that serve Kafka clients.
"""
