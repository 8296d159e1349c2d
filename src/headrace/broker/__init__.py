"""The broker's process: listeners, connections, dispatch, one file per API, and the wiring of all parts.

Entry point: `main.run`. Nothing outside imports from here; other programs go over the wire.
"""
