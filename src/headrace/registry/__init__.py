"""The schema registry: subjects and their versions over the topic `_schemas`, with Confluent's REST API in front."""
