"""The key and the value column: bytes, text, JSON, and values with a schema of a registry, in both directions."""
