"""Samples of a cluster and the tables made from them, for `headrace top`."""
