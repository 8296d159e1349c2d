"""The pipeline that `headrace pipeline init` writes: word count, complete, to be changed."""

STARTER = '''"""Counts words: reads lines from a topic, writes each word's count to another.

    headrace topics --create --topic lines --bootstrap-server localhost:9092
    headrace topics --create --topic word-counts --bootstrap-server localhost:9092
    headrace pipeline validate THIS_FILE
    headrace pipeline run THIS_FILE                 # Ctrl-C stops it between two batches
    headrace console-producer --topic lines --bootstrap-server localhost:9092
"""

from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import flow, source, topic, view

source("lines", topic("lines", valueFormat="string", startingOffsets="earliest"))


@view
def words(lines):
    """One row per word. The argument is the source of that name."""
    return lines.select(fn.explode(fn.split(fn.lower("value"), r"\\W+")).alias("word")).where("word <> ''")


@flow(into=topic("word-counts", key="word"), mode="update")
def word_count(words):
    """Rows become JSON records; `key` names the column that becomes the record's key."""
    return words.groupBy("word").count()
'''
