"""What the benchmark of pipelines runs inside Spark's Python processes."""
