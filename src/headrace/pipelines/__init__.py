"""Data pipelines on Spark: topics as a Spark source and sink (`format("headrace")`), and the runner of pipelines.

`source` and `sink` are what Spark sees; `record_spans` and `arrow_columns` open whole fetches at once, `batch_encoding` closes
them. `pipeline` is what a pipeline's file imports, `runner` runs it. Only the wire leads to a broker, so all of it works with any
Kafka. Spark, numpy and pyarrow come with `pip install headrace[spark]` and are imported by the modules that need them alone.
"""
