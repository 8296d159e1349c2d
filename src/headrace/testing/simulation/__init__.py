"""Simulation of whole clusters: real brokers on virtual processes, clients, faults and what must be true, all from a seed."""
