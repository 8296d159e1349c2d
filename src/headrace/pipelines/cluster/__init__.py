"""What the driver and the tasks ask of a Kafka cluster: topics, offsets, group commits, and the clients that are kept for it."""
