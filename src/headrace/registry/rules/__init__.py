"""The rules of the registry: what a request changes or is answered, given the state. Pure."""
