"""Confluent's REST API of a schema registry: one module a resource, and what they share."""
