"""The registry's state: subjects, versions and settings, and the records of the topic `_schemas` that they are made of. Pure."""
