"""Producing over HTTP: forms of requests, the producer, answers to single records."""
