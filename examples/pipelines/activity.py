"""Activity tracking: page views as visits. A visit ends when a user does nothing for ten minutes.

The second flow is written in SQL over the same view.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import flow, source, sql_flow, topic, view

VIEW = "view_id STRING, user STRING, page STRING, at TIMESTAMP"

source(
    "view_records",
    topic("page-views", valueFormat="json", valueSchema=VIEW, startingOffsets="earliest"),
)


@view
def page_views(view_records: DataFrame) -> DataFrame:
    """Each view once."""
    views = view_records.select("value.*").withWatermark("at", "10 minutes")
    return views.dropDuplicatesWithinWatermark(["view_id"])


@flow(into=topic("visits", key="user"))
def visits(page_views: DataFrame) -> DataFrame:
    """How many pages each visit had."""
    counted = page_views.groupBy(fn.session_window("at", "10 minutes"), "user").count()
    return counted.select(
        "user", fn.col("session_window.start").alias("began"), fn.col("count").alias("pages")
    )


sql_flow(
    "popular_pages",
    """
    SELECT page, window.start AS hour, count(*) AS views
    FROM page_views
    GROUP BY window(at, '1 hour'), page
    """,
    into=topic("popular-pages", key="page"),
)
