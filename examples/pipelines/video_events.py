"""A video player's events: what users like to watch, and which videos are hot now.

Players send events again when they are not sure that one arrived, and late when they were offline. The same event counts once;
one that is more than five minutes behind the newest is too late and does not count.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import flow, source, topic, view

EVENT = "event_id STRING, user STRING, video STRING, category STRING, seconds INT, at TIMESTAMP"

source(
    "player_events",
    topic("player-events", valueFormat="json", valueSchema=EVENT, startingOffsets="earliest"),
)


@view
def plays(player_events: DataFrame) -> DataFrame:
    """Each event once."""
    events = player_events.select("value.*").withWatermark("at", "5 minutes")
    return events.dropDuplicatesWithinWatermark(["event_id"])


@flow(into=topic("user-preferences", key="user"))
def user_preferences(plays: DataFrame) -> DataFrame:
    """How long each user watched each category, hour by hour."""
    hours = plays.groupBy(fn.window("at", "1 hour"), "user", "category")
    watched = hours.agg(fn.sum("seconds").alias("seconds"))
    return watched.select("user", "category", fn.col("window.start").alias("hour"), "seconds")


@flow(into=topic("hot-videos", key="video"))
def hot_videos(plays: DataFrame) -> DataFrame:
    """How often each video was played in the last ten minutes, every five minutes."""
    windows = plays.groupBy(fn.window("at", "10 minutes", "5 minutes"), "video")
    counted = windows.agg(fn.count("*").alias("plays"))
    return counted.select("video", fn.col("window.end").alias("until"), "plays")
