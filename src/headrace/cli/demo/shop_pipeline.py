"""The demo's pipeline: what happened in the shop, in windows of five minutes. Late events count while their window is open.

`headrace demo` runs this file with `headrace pipeline run`; nothing imports it.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import flow, source, topic

EVENT = "id BIGINT, user STRING, kind STRING, cents BIGINT, at TIMESTAMP"

source(
    "shop_events",
    topic(
        "shop-events",
        valueFormat="json",
        valueSchema=EVENT,
        startingOffsets="earliest",
        commitGroup="shop-pipeline",
    ),
)


@flow(into=topic("shop-windows", key="kind"))
def shop_windows(shop_events: DataFrame) -> DataFrame:
    """Events and takings of each kind in each window, written once, when the window is closed."""
    events = shop_events.select("value.*").withWatermark("at", "10 minutes")
    windows = events.groupBy(fn.window("at", "5 minutes"), "kind")
    sums = windows.agg(fn.count("*").alias("events"), fn.sum("cents").alias("cents"))
    start = fn.date_format("window.start", "yyyy-MM-dd'T'HH:mm:ss'Z'")
    return sums.select(start.alias("window"), "kind", "events", "cents")
