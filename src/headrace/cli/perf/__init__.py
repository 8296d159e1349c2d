"""Rates and latencies of the perf tests and the verifiable tools. Pure."""
