"""Settings: what a broker, a topic, a group can be told, under Kafka's names.

Entry points: `broker_settings.BrokerSettings` (typed, for the broker), `topic_config.TopicConfig`
(typed, for partitions), `describe` and `alter` (for the config APIs), `properties` (files and
overrides). All is pure; who stores configs and reads files is not known here.
"""
