"""Headrace: a streaming platform that speaks Kafka's protocol, in Python, with Spark as its engine."""

__version__ = "0.1.0.dev0"
