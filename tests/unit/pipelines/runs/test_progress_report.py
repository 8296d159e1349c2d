"""Spark's progress in a few numbers and in one line."""

import json

from headrace.pipelines.runs.progress_report import flow_report, lag_of, report_line

PROGRESS = {
    "batchId": 7,
    "timestamp": "2026-03-01T12:00:00.000Z",
    "numInputRows": 1200,
    "processedRowsPerSecond": 4800.04,
    "durationMs": {"triggerExecution": 250},
    "sources": [
        {"endOffset": '{"a":{"0":10,"1":4}}', "latestOffset": '{"a":{"0":15,"1":4,"2":3}}'},
        {"endOffset": '{"version": 3}', "latestOffset": None},
    ],
    "stateOperators": [
        {"numRowsTotal": 30, "memoryUsedBytes": 2_000_000, "numRowsDroppedByWatermark": 2},
        {"numRowsTotal": 3, "memoryUsedBytes": 500_000},
    ],
    "eventTime": {"watermark": "2026-03-01T11:50:00.000Z"},
}


def test_the_numbers_of_a_batch() -> None:
    report = flow_report(PROGRESS)
    assert json.loads(json.dumps(report)) == report
    assert (report["rows"], report["rows_per_s"], report["batch_ms"]) == (1200, 4800.0, 250)
    assert report["lag"] == 5 + 0 + 3, "a partition that is new is behind as a whole"
    assert (report["state_rows"], report["state_bytes"], report["late_rows"]) == (33, 2_500_000, 2)
    line = report_line("orders", report)
    for words in (
        "batch     7",
        "4,800 rows/s",
        "250 ms",
        "lag 8",
        "33 rows, 2.5 MB",
        "2 too late",
    ):
        assert words in line


def test_what_no_source_tells_is_not_guessed() -> None:
    assert lag_of({"sources": [{"endOffset": '{"version": 3}', "latestOffset": "null"}]}) is None
    report = flow_report({"batchId": 0})
    assert report["lag"] is None
    assert "lag" not in report_line("still", report)
