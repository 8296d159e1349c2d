"""Every kind of source and sink a pipeline can name that is not a topic, and pipelines in SQL."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from tests.pipelines.example_run import ExampleRun
from tests.support.spark_topics import Topics

DATABASE = "jdbc:derby:memory:weather"  # Derby's driver is the one that comes with Spark
WEATHER = """
from headrace.pipelines.pipeline import files, flow, jdbc, source, sql_flow, sql_view, table

READING = "city STRING, degrees DOUBLE"
source("readings", files("{home}/readings", format="csv", schema=READING, header=True))
source("notes", files("{home}/notes", format="text"))
source("cities", files("{home}/cities", format="json"), streaming=False)
source("limits", jdbc("{database}", "limits"), streaming=False)
sql_view("warm", "SELECT city, country, degrees FROM readings JOIN cities USING (city), limits WHERE degrees > warm_from")
sql_flow("as_json", "SELECT country, degrees FROM warm", into=files("{home}/json", format="json"))
sql_flow("as_csv", "SELECT city FROM warm", into=files("{home}/csv", format="csv", header=True))
sql_flow("as_text", "SELECT upper(value) AS value FROM notes", into=files("{home}/text", format="text"))
sql_flow("as_rows", "SELECT city, degrees FROM warm", into=jdbc("{database}", "warm"))

@flow(into=table("warm_days"))
def as_table(warm):
    return warm.select("city", "degrees")
"""


def test_files_tables_and_databases_in_sql(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    for name in ("readings", "notes", "cities"):
        (tmp_path / name).mkdir()
    cities = [{"city": "Kiruna", "country": "SE"}, {"city": "Rome", "country": "IT"}]
    (tmp_path / "cities" / "all.json").write_text("\n".join(map(json.dumps, cities)))
    limits = spark.createDataFrame([(20.0,)], "warm_from double")
    created = f"{DATABASE};create=true"
    limits.write.format("jdbc").mode("overwrite").options(url=created, dbtable="limits").save()
    path = tmp_path / "weather.py"
    path.write_text(WEATHER.format(home=tmp_path, database=DATABASE))

    pipeline = ExampleRun(spark, topics, path, tmp_path / "state")
    portions = (["Rome,31.5", "Kiruna,4.0"], ["Kiruna,22.5", "Oslo,25.0"])
    for number, lines in enumerate(portions):
        (tmp_path / "readings" / f"{number}.csv").write_text(
            "\n".join(["city,degrees", *lines, ""])
        )
        (tmp_path / "notes" / f"{number}.txt").write_text(f"note {number}\n")
        pipeline.once()

    assert read_lines(tmp_path / "json") == [
        '{"country":"IT","degrees":31.5}',
        '{"country":"SE","degrees":22.5}',
    ]
    assert read_lines(tmp_path / "csv") == ["Kiruna", "Rome", "city", "city"]
    assert read_lines(tmp_path / "text") == ["NOTE 0", "NOTE 1"]
    rows = spark.read.format("jdbc").options(url=DATABASE, dbtable="warm").load().collect()
    assert sorted(map(tuple, rows)) == [("Kiruna", 22.5), ("Rome", 31.5)]
    kept = spark.read.parquet(str(tmp_path / "state" / "tables" / "warm_days")).collect()
    assert sorted(map(tuple, kept)) == [("Kiruna", 22.5), ("Rome", 31.5)]
    spark.sql("DROP TABLE warm_days")


def read_lines(directory: Path) -> list[str]:
    """All lines of a directory of files, in order."""
    return sorted(
        line for path in directory.glob("part-*") for line in path.read_text().splitlines()
    )


TWO_FLOWS = """
from headrace.pipelines.pipeline import files, flow, source, topic, view

source("orders", topic("{topic}", valueFormat="json", valueSchema="id INT", startingOffsets="earliest",
                       onDecodeError="deadLetterTopic", deadLetterTopic="{dead}"))

@view
def ids(orders):
    return orders.select("value.id")

@flow(into=files("{home}/one", format="csv"))
def one(ids):
    return ids

@flow(into=files("{home}/two", format="csv"))
def two(spark, ids):
    return spark.sql("SELECT id FROM ids")
"""


def test_two_flows_write_a_dead_letter_once(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic, dead = topics.create("orders"), topics.create("dead")
    path = tmp_path / "two_flows.py"
    path.write_text(TWO_FLOWS.format(home=tmp_path, topic=topic, dead=dead))
    pipeline = ExampleRun(spark, topics, path, tmp_path / "state")
    topics.send(topic, ['{"id":1}', "odd", '{"id":2}'])
    pipeline.once()
    assert topics.values(dead) == [b"odd"]
    assert read_lines(tmp_path / "one") == read_lines(tmp_path / "two") == ["1", "2"]
