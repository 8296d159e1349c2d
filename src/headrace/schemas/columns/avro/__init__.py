"""Avro values as Arrow columns, in both directions. Pure."""
