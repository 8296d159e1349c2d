"""Topics as rows: how far a query may read, and the reading of ranges of partitions in the tasks of Spark."""
