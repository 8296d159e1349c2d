"""A pipeline that runs: its queries are started, watched and stopped, and its directory on disk says how it goes."""
