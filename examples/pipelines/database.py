"""A database's changes into a topic, and a topic into a database's table.

`changed` is a column of the table that rises with every change. Rows that come out of the topic replace those with the same
key, so a row that comes twice changes nothing.
"""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import database, flow, source, topic

URL = os.environ.get("SHOP_DATABASE", "sqlite:///shop.db")
PRODUCT = "id INT, name STRING, price DOUBLE, changed BIGINT"

# A row is read a second after its version was seen: transactions that take longer to commit would be passed over.
source(
    "product_changes",
    database(URL, "products", version="changed", schema=PRODUCT, settle="1s"),
)
source(
    "stock_records",
    topic(
        "stock", valueFormat="json", valueSchema="id INT, pieces INT", startingOffsets="earliest"
    ),
)


@flow(into=topic("products", key="id"))
def products(product_changes: DataFrame) -> DataFrame:
    """Each change of a product, as a record."""
    return product_changes


@flow(into=database(URL, "stock", keys=["id"]), mode="update")
def stock(stock_records: DataFrame) -> DataFrame:
    """The newest number of pieces of each product."""
    newest = fn.max_by("value.pieces", fn.struct("partition", "offset")).alias("pieces")
    return stock_records.groupBy(fn.col("value.id").alias("id")).agg(newest)
