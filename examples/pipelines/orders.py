"""Orders with their payments (two streams), and orders with their customers (a stream and a table).

An order and its payment may come in any order; a payment more than an hour after its order does not count. Customers are a
compacted topic: the newest record of a key is the customer, and a null deletes it.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headrace.pipelines.pipeline import flow, source, topic, view

ORDER = "order_id STRING, customer_id STRING, amount DOUBLE, at TIMESTAMP"
PAYMENT = "order_id STRING, method STRING, at TIMESTAMP"
CUSTOMER = "name STRING, country STRING"

source(
    "order_records",
    topic("orders", valueFormat="json", valueSchema=ORDER, startingOffsets="earliest"),
)
source(
    "payment_records",
    topic("payments", valueFormat="json", valueSchema=PAYMENT, startingOffsets="earliest"),
)
source(
    "customers",
    topic("customers", keyFormat="string", valueFormat="json", valueSchema=CUSTOMER),
    as_table=True,
)


@view
def orders(order_records: DataFrame) -> DataFrame:
    """Each order once."""
    found = order_records.select("value.*").withWatermark("at", "10 minutes")
    return found.dropDuplicatesWithinWatermark(["order_id"])


@view
def payments(payment_records: DataFrame) -> DataFrame:
    """Each payment once."""
    found = payment_records.select("value.*").withWatermark("at", "10 minutes")
    return found.dropDuplicatesWithinWatermark(["order_id"])


@flow(into=topic("paid-orders", key="order_id"))
def paid_orders(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Orders that were paid within an hour."""
    ordered, paid = orders.alias("ordered"), payments.alias("paid")
    fits = fn.expr(
        "ordered.order_id = paid.order_id AND paid.at >= ordered.at AND paid.at <= ordered.at + INTERVAL 1 HOUR"
    )
    return ordered.join(paid, fits).select("ordered.order_id", "customer_id", "amount", "method")


@flow(into=topic("orders-by-country", key="country"))
def orders_by_country(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Orders with the customer as it is when the order is read."""
    known = customers.select(fn.col("key").alias("customer_id"), "value.name", "value.country")
    return orders.join(known, "customer_id", "left").select("order_id", "name", "country", "amount")
