"""Word count: lines from a topic, each word's count to another. The newest record of a word is its count.

headrace pipeline run examples/pipelines/word_count.py
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import flow, source, topic, view

source("lines", topic("lines", valueFormat="string", startingOffsets="earliest"))


@view
def words(lines: DataFrame) -> DataFrame:
    """One row per word."""
    word = fn.explode(fn.split(fn.lower("value"), r"\W+")).alias("word")
    return lines.select(word).where("word <> ''")


@flow(into=topic("word-counts", key="word"), mode="update")
def word_count(words: DataFrame) -> DataFrame:
    """Counts so far."""
    return words.groupBy("word").count()
