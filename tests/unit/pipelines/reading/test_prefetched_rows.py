"""Rows that go along with a plan: what PySpark's own code makes of a reader that hands them over."""

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.streaming import python_streaming_source_runner as runner
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructField, StructType

from headrace.pipelines.reading import prefetched_rows
from headrace.pipelines.reading.prefetched_rows import PrefetchingReader

SCHEMA = StructType([StructField("number", LongType())])
START, END = {"t": {"0": 1}}, {"t": {"0": 3}}


class Source(DataSource):
    """Never asked for anything."""


class Reader(PrefetchingReader, SupportsTriggerAvailableNow):
    def __init__(self, rows: list[pa.RecordBatch] | None) -> None:
        self._rows = rows

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if self._rows is not None:
            self.hand_over(self._rows)
        return [InputPartition((start, end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise AssertionError("tasks have readers of their own")

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return END

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass


def numbers(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], ["number"])


def number(answer: BytesIO) -> int:
    return int.from_bytes(answer.read(4), signed=True)


def planned(reader: Reader) -> tuple[int, BytesIO]:
    """What PySpark sends for the plan of a batch: which kind of rows, and then the rows."""
    asked, answer = BytesIO(), BytesIO()
    for offset in (START, END):
        text = json.dumps(offset).encode()
        asked.write(len(text).to_bytes(4) + text)
    asked.seek(0)
    runner.partitions_func(reader, Source({}), SCHEMA, 1000, asked, answer)
    answer.seek(0)
    assert number(answer) == 1
    answer.read(number(answer))  # the partition, pickled
    return number(answer), answer


def test_rows_go_along_with_the_plan() -> None:
    kind, answer = planned(Reader([numbers(1), numbers(2, 3)]))
    assert kind == runner.NON_EMPTY_PYARROW_RECORD_BATCHES
    number(answer)  # the start of an Arrow stream
    batches = ArrowStreamSerializer().load_stream(answer)
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == [1, 2, 3]


def test_a_batch_without_rows_is_not_read_by_a_task_either() -> None:
    kind, _ = planned(Reader([]))
    assert kind == runner.EMPTY_PYARROW_RECORD_BATCHES


def test_what_is_not_handed_over_is_read_by_a_task() -> None:
    kind, _ = planned(Reader(None))
    assert kind == runner.PREFETCHED_RECORDS_NOT_FOUND


@pytest.mark.parametrize("rows", [[numbers(1)], None])
def test_the_reader_is_then_what_it_was(rows: list[pa.RecordBatch] | None) -> None:
    reader = Reader(rows)
    for _ in range(2):
        planned(reader)
        assert type(reader) is Reader
        reported = BytesIO()
        runner.report_latest_offset_func(reader, reported)
        assert reported.getvalue()[4:] == json.dumps(END).encode()


def test_rows_that_nobody_took_are_forgotten() -> None:
    reader = Reader([numbers(1)])
    reader.partitions(START, END)
    assert type(reader) is not Reader
    reader.take_back()
    assert type(reader) is Reader
    reader._rows = None
    assert planned(reader)[0] == runner.PREFETCHED_RECORDS_NOT_FOUND


def test_without_pysparks_wrapper_nothing_can_be_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Reader(None).can_prefetch
    monkeypatch.setattr(prefetched_rows, "_Wrapper", None)
    assert not Reader(None).can_prefetch
