"""Schemas and the records written with them: schema languages, a client of schema registries, Confluent's wire format."""
