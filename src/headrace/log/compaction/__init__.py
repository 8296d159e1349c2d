"""Compaction of one log: when, how far, the rewriting of segments, and putting the new segments in place."""
