"""Data pipelines on Spark: topics as a Spark source and sink (`format("headrace")`), and the runner of pipelines.

What users import lies at the top: `pipeline` for a pipeline's file, `source` (what Spark sees of Headrace) and `spark_session` for
sessions of their own. `reading` and `writing` do the work of the source and the sink, over `records` (record batches as columns)
and `columns` (keys and values as columns); `definitions` loads a pipeline's file and `runs` runs it. Brokers are reached by Kafka's
protocol only, so all of it works with any Kafka. Spark, numpy and pyarrow come with `pip install headrace[spark]` and are imported by the modules that need them alone.
"""
