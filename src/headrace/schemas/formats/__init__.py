"""The schema languages: Avro, JSON Schema and Protobuf. One module each parses, prints and compares schemas of its language."""
