"""Schemas of a registry for requests: which one a request means, registered and compiled where needed."""
