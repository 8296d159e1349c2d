"""Clients we did not write, each behind the same few calls. `client.py` is the contract; one file per client."""
