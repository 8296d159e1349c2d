"""The same words as Spark Declarative Pipelines: its decorators run here continuously, in plain Structured Streaming."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

spark = SparkSession.active()
SERVERS = spark.conf.get("headrace.bootstrap.servers", "localhost:9092") or ""

dp.create_sink("shouted", "headrace", {"topic": "shouted", "kafka.bootstrap.servers": SERVERS})


@dp.temporary_view
def whispered() -> DataFrame:
    """Lines of a topic."""
    reader = spark.readStream.format("headrace").option("kafka.bootstrap.servers", SERVERS)
    return reader.options(
        subscribe="whispered", valueFormat="string", startingOffsets="earliest"
    ).load()


@dp.append_flow(target="shouted")
def shout() -> DataFrame:
    """Lines of a topic, louder."""
    return spark.sql("SELECT upper(value) AS value FROM STREAM(whispered)")


@dp.table
def whispers() -> DataFrame:
    """All of them, kept as a table."""
    return spark.readStream.table("whispered").select("value", "offset")


@dp.materialized_view
def longest() -> DataFrame:
    """The longest one."""
    return spark.read.table("whispers").orderBy(fn.desc(fn.length("value")), "offset").limit(1)
