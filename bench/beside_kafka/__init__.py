"""Headrace beside Apache Kafka: the same clients, settings and data, one server after the other, as ratios."""
