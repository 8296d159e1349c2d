"""Servers on this machine, as child processes of a tool: start, stop, why a start failed, what a machine lacks."""
