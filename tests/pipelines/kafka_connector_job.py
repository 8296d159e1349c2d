"""A job with Spark's own Kafka connector, started by its test in a process of its own: jars are given when Java starts."""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headrace.pipelines.spark_session import start_session
from tests.pipelines.pipeline_process import QUICK_JAVA


def main(servers: str, jars: str, directory: str) -> None:
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.sql.shuffle.partitions": "1",
    }
    log_file = Path(directory) / "spark.log"
    spark = start_session("connector", master="local[2]", settings=settings, log_file=log_file)
    cluster = {"kafka.bootstrap.servers": servers}
    write(spark.range(500), cluster)
    read = (
        spark.read.format("kafka")
        .options(subscribe="numbers", includeHeaders="true", **cluster)
        .load()
    )
    total = read.selectExpr("sum(cast(cast(value as string) as int)) as total").collect()[0].total
    checkpoint = f"{directory}/checkpoint"
    batches = copied(spark, "kafka", cluster, checkpoint)
    write(spark.range(500, 550), cluster)
    taken_over = copied(spark, "headrace", cluster, checkpoint)
    # What start_session registers is registered for one session; another one knows only what is installed.
    unaware = spark.newSession().read.format("headrace").options(subscribe="copies", **cluster)
    by_name = unaware.load().count()
    found = {"total": total, "batches": batches, "taken_over": taken_over, "by_name": by_name}
    sys.stdout.write(json.dumps(found) + "\n")
    spark.stop()


def write(numbers: DataFrame, cluster: dict[str, str]) -> None:
    records = numbers.selectExpr("cast(id % 7 as string) as key", "cast(id as string) as value")
    records.write.format("kafka").options(topic="numbers", **cluster).save()


def copied(
    spark: SparkSession, its_format: str, cluster: dict[str, str], checkpoint: str
) -> list[int]:
    """Copy what is there to another topic; the rows of each batch."""
    query = (
        spark.readStream.format(its_format)
        .options(
            subscribe="numbers", startingOffsets="earliest", maxOffsetsPerTrigger="200", **cluster
        )
        .load()
        .selectExpr("key", "value")
        .writeStream.format("kafka")
        .options(topic="copies", checkpointLocation=checkpoint, **cluster)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [each.numInputRows for each in query.recentProgress]


if __name__ == "__main__":
    main(*sys.argv[1:])
