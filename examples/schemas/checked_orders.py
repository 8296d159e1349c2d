"""Orders whose schema evolves: those with an amount above zero go on, with whatever columns the newest schema has.

The columns are those of the newest schema when the pipeline starts. Records written with other versions are resolved to it by Avro's
rules; records that cannot be are dead letters. What is written gets a schema of its own, which follows when columns come and go.
"""

from pyspark.sql import DataFrame

from headrace.pipelines.pipeline import flow, source, topic

source(
    "orders",
    topic(
        "orders",
        valueFormat="avro",
        startingOffsets="earliest",
        onDecodeError="deadLetterTopic",
        deadLetterTopic="unreadable-orders",
    ),
)


@flow(into=topic("checked-orders", key="id", valueFormat="avro"))
def checked_orders(orders: DataFrame) -> DataFrame:
    """Every column of an order, as it is."""
    return orders.select("value.*").where("amount > 0")
