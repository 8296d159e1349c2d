"""Settings: what a broker, a topic, a group can be told, under Kafka's names.

Entry points: `broker_settings.BrokerSettings` (typed, for the broker), `topic_config.TopicConfig`
(typed, for partitions), `describe` and `alter` (for the config APIs), `live_settings` (the
broker's settings as they are now). Files and overrides are read by `headrace.properties`. All is pure.
"""
