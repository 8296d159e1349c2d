"""The files of a log directory: the interface to the file system, and small files beside the logs (checkpoints, identities)."""
