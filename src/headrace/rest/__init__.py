"""The REST proxy: Confluent's REST API, versions 2 and 3, over any Kafka. It produces, consumes and administers for HTTP clients."""
