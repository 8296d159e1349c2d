"""Spark's progress of a query as the few numbers that people want: rows per second, batch time, lag, state. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.pipelines.offset_ranges import offsets_in


def flow_report(progress: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of one flow, from Spark's own JSON of its newest batch."""
    durations = progress.get("durationMs") or {}
    states = progress.get("stateOperators") or []
    return {
        "batch": progress.get("batchId"),
        "at": progress.get("timestamp"),
        "rows": progress.get("numInputRows", 0),
        "rows_per_s": round(progress.get("processedRowsPerSecond") or 0.0, 1),
        "batch_ms": durations.get("triggerExecution"),
        "lag": lag_of(progress),
        "state_rows": sum(each.get("numRowsTotal", 0) for each in states),
        "state_bytes": sum(each.get("memoryUsedBytes", 0) for each in states),
        "late_rows": sum(each.get("numRowsDroppedByWatermark", 0) for each in states),
        "watermark": (progress.get("eventTime") or {}).get("watermark"),
    }


def lag_of(progress: Mapping[str, Any]) -> int | None:
    """How many records of topics are not read yet; None where no source says."""
    total = None
    for source in progress.get("sources") or []:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if end is None or latest is None:
            continue
        behind = (offset - end.get(each, 0) for each, offset in latest.items())
        total = (total or 0) + sum(max(each, 0) for each in behind)
    return total


def _offsets(found: Any) -> dict[Any, int] | None:
    try:
        return offsets_in(json.loads(found) if isinstance(found, str) else found)
    except (ValueError, TypeError, AttributeError):
        return None


def report_line(name: str, report: Mapping[str, Any]) -> str:
    """One flow in one line."""
    parts = [
        f"{name:<24} batch {report['batch']:>5}",
        f"{report['rows']:>9,} rows",
        f"{report['rows_per_s']:>11,.0f} rows/s",
        f"{report['batch_ms'] or 0:>7,} ms",
    ]
    if report.get("lag") is not None:
        parts.append(f"lag {report['lag']:,}")
    if report.get("state_rows"):
        parts.append(f"state {report['state_rows']:,} rows, {report['state_bytes'] / 1e6:.1f} MB")
    if report.get("late_rows"):
        parts.append(f"{report['late_rows']:,} too late")
    return "  ".join(parts)
