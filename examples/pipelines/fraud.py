"""A rule with a memory per card: a tiny charge followed within a minute by a large one is how stolen cards are tried out."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from headrace.pipelines.pipeline import flow, source, topic

CHARGE = "charge_id STRING, card STRING, amount DOUBLE, at TIMESTAMP"
TINY, LARGE, WITHIN_MS = 1.0, 500.0, 60_000

source(
    "charges", topic("charges", valueFormat="json", valueSchema=CHARGE, startingOffsets="earliest")
)


class TriedOut(StatefulProcessor):
    """Remembers each card's last tiny charge."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._tiny = handle.getValueState("tiny", "charge_id STRING, at_ms BIGINT")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        for charge in sorted(rows, key=lambda row: row["at_ms"]):
            last = self._tiny.get() if self._tiny.exists() else None
            if charge["amount"] < TINY:
                self._tiny.update((charge["charge_id"], charge["at_ms"]))
            elif (
                last is not None
                and charge["amount"] > LARGE
                and charge["at_ms"] - last[1] <= WITHIN_MS
            ):
                self._tiny.clear()
                yield Row(card=key[0], tried_with=last[0], charge_id=charge["charge_id"])

    def close(self) -> None:
        pass


@flow(into=topic("suspicions", key="card"))
def suspicions(charges: DataFrame) -> DataFrame:
    """Cards that somebody tried out."""
    once = (
        charges.select("value.*")
        .withWatermark("at", "10 minutes")
        .dropDuplicatesWithinWatermark(["charge_id"])
    )
    timed = once.withColumn("at_ms", fn.unix_millis("at"))
    return timed.groupBy("card").transformWithState(
        statefulProcessor=TriedOut(),
        outputStructType="card STRING, tried_with STRING, charge_id STRING",
        outputMode="Append",
        timeMode="None",
    )
