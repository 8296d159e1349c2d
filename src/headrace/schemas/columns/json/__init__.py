"""JSON values as Arrow columns, with a JSON Schema or by the rules of Spark's `from_json`. Pure."""
