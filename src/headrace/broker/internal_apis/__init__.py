"""Headrace's own requests among brokers: not Kafka's, not advertised. Listed in `broker.api_table`."""
