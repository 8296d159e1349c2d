"""Rows as records of topics: the sink of batch and streaming queries."""
