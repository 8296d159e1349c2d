"""Tables of SQLite and PostgreSQL: rows written by key, and their changes as a stream."""
