"""Work that a broker does without being asked: retention, syncing, checkpoints, compaction, limits of open files."""
