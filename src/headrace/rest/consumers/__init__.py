"""Consumer instances of version 2: Kafka consumers that HTTP clients create, use by several requests, and delete."""
