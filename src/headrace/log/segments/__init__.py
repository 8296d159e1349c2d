"""Segments of one log: the `.log` file, its indexes, and how a doubted file is scanned."""
