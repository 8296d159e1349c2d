"""Log aggregation: what services log, as Parquet files by day and level. Lines that are no JSON go to a topic of dead letters."""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import files, flow, source, topic

LINE = "service STRING, level STRING, message STRING, at TIMESTAMP"
DIRECTORY = os.environ.get("LOGS_DIRECTORY", "logs-archive")

source(
    "log_lines",
    topic(
        "logs",
        valueFormat="json",
        valueSchema=LINE,
        startingOffsets="earliest",
        onDecodeError="deadLetterTopic",
        deadLetterTopic="logs-dead-letters",
    ),
)


@flow(into=files(DIRECTORY, format="parquet", partition_by=["day", "level"]), trigger="10 seconds")
def archive(log_lines: DataFrame) -> DataFrame:
    """Where each line came from is kept: with it, a line that was archived twice is found."""
    lines = log_lines.select("value.*", "partition", "offset")
    return lines.withColumn("day", fn.to_date("at"))
