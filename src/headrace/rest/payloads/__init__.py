"""Keys and values in JSON and as bytes: plain formats, and formats with a schema of a registry."""
