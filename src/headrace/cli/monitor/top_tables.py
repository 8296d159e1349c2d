"""A cluster's view as tables: the same rows for a live screen and for plain text. Pure but for rich, which only the screen needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from headrace.cli.monitor.cluster_view import BrokerRow, ClusterView, GroupRow, TopicRow

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNKNOWN: Final = "-"
_LEAST_ROWS: Final = 3
_SHORTEST_TEXT: Final = 8
_BETWEEN: Final = 2  # what a column takes beside its text
_LINES_PER_TABLE: Final = 4  # title, header, its rule, an empty line


@dataclass(frozen=True, slots=True)
class Table:
    """A title, columns (those whose name begins with a space hold numbers), rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_alarming: bool = False


def tables_of(view: ClusterView) -> list[Table]:
    """Every table of a screen, in order; what is wrong comes first."""
    tables = []
    if view.warnings:
        said = [(str(each.broker_id), each.text) for each in view.warnings]
        title = f"{counted(len(said), 'warning')} of brokers"
        tables.append(Table(title, ("broker", "warning"), said, is_alarming=True))
    if view.troubles:
        rows = [
            (
                f"{each.topic}-{each.partition}",
                _UNKNOWN if each.leader < 0 else str(each.leader),
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.isr)),
                each.what,
            )
            for each in view.troubles
        ]
        title = f"{counted(len(rows), 'partition')} in trouble"
        columns = ("partition", "leader", "replicas", "in sync", "trouble")
        tables.append(Table(title, columns, rows, is_alarming=True))
    tables.append(_brokers(view.brokers))
    tables.append(_topics(view.topics))
    tables.append(_groups(view.groups))
    return tables


def _brokers(rows: Sequence[BrokerRow]) -> Table:
    return Table(
        counted(len(rows), "broker"),
        ("id", "address", " leads", " replicas", " on disk", " in/s", " out/s"),
        [
            (
                f"{row.broker_id}{'*' if row.is_controller else ''}",
                row.address + (f" ({row.rack})" if row.rack else ""),
                str(row.leaders),
                str(row.replicas),
                size(row.log_bytes),
                size(row.bytes_in),
                size(row.bytes_out),
            )
            for row in rows
        ],
    )


def _topics(rows: Sequence[TopicRow]) -> Table:
    return Table(
        counted(len(rows), "topic"),
        ("topic", " parts", " repl", " on disk", " records/s", " in/s", " out/s"),
        [
            (
                row.topic,
                str(row.partitions),
                str(row.replication_factor),
                size(row.log_bytes),
                count(row.records_in),
                size(row.bytes_in),
                size(row.bytes_out),
            )
            for row in rows
        ],
    )


def _groups(rows: Sequence[GroupRow]) -> Table:
    return Table(
        counted(len(rows), "group"),
        ("group", "state", " members", "topics", " lag", " behind", "trend"),
        [
            (
                row.group_id,
                row.state,
                str(row.members),
                ",".join(row.topics),
                f"{row.lag:,}",
                duration(row.lag_s),
                trend(row),
            )
            for row in rows
        ],
    )


# ---- values as people read them


def size(value: float | None) -> str:
    """Bytes with a unit, three digits or so."""
    if value is None:
        return _UNKNOWN
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "B" or value >= 100 else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def counted(number: int, what: str) -> str:
    """`1 topic`, `2 topics`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def count(value: float | None) -> str:
    """How many."""
    return _UNKNOWN if value is None else f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """Seconds, minutes, hours or days, whatever is short."""
    if seconds is None:
        return _UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    for unit, length in (("s", 120), ("min", 120 * 60), ("h", 48 * 3600)):
        if seconds < length:
            return f"{seconds / (length / 120 if unit != 'h' else 3600):.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


def trend(row: GroupRow) -> str:
    """Whether a group catches up, and when it is done."""
    if row.lag_change_per_s > 0:
        return f"↗ {row.lag_change_per_s:,.0f}/s"
    if row.lag_change_per_s < 0:
        done = f", done in {duration(row.done_in_s)}" if row.done_in_s is not None else ""
        return f"↘ {-row.lag_change_per_s:,.0f}/s{done}"
    return "→" if row.lag else ""


def title_of(view: ClusterView) -> str:
    moment = datetime.fromtimestamp(view.now_ms / 1000, UTC).astimezone()
    return f"cluster {view.cluster_id} · {moment:%H:%M:%S} · over {view.interval_s:.1f} s"


# ---- plain text


def plain_lines(view: ClusterView) -> list[str]:
    """The whole view for a pipe or a file."""
    lines = [title_of(view)]
    for table in tables_of(view):
        lines += ["", table.title]
        if table.rows:
            lines += _aligned(table)
    return lines


def _aligned(table: Table) -> list[str]:
    cells = [tuple(name.strip().upper() for name in table.columns), *table.rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(table.columns))]
    lines = []
    for row in cells:
        parts = [
            f"{value:>{width}}" if name.startswith(" ") else f"{value:<{width}}"
            for name, value, width in zip(table.columns, row, widths, strict=True)
        ]
        lines.append("  " + "  ".join(parts).rstrip())
    return lines


# ---- the screen


def screen(view: ClusterView, width: int, height: int, remark: str = "") -> RenderableType:
    """The view as large as the terminal allows."""
    from rich.console import Group
    from rich.text import Text

    tables = tables_of(view)
    shares = row_shares([len(table.rows) for table in tables], height)
    heading = Text.assemble(("headrace top", "bold cyan"), f"  {title_of(view)}")
    if remark:
        heading.append(f"  {remark}", style="bold red")
    parts: list[RenderableType] = [heading]
    for table, share in zip(tables, shares, strict=True):
        parts += ["", _drawn(fitted(table, width), share)]
    return Group(*parts)


def fitted(table: Table, width: int) -> Table:
    """The table with its longest texts cut so that it fits; numbers are never cut."""
    cells = [table.columns, *table.rows]
    widths = [max(len(row[index].strip()) for row in cells) for index in range(len(table.columns))]
    texts = [index for index, name in enumerate(table.columns) if not name.startswith(" ")]
    while sum(widths) + _BETWEEN * len(widths) > width:
        longest = max(texts, key=lambda index: widths[index])
        if widths[longest] <= _SHORTEST_TEXT:
            break
        widths[longest] -= 1
    rows = [
        tuple(
            value if len(value) <= most else value[: most - 1] + "…"
            for value, most in zip(row, widths, strict=True)
        )
        for row in table.rows
    ]
    return Table(table.title, table.columns, rows, is_alarming=table.is_alarming)


def row_shares(counts: Sequence[int], height: int) -> list[int]:
    """How many rows of each table fit on a screen: the small ones whole, the large ones share the rest."""
    left = max(height - 1 - _LINES_PER_TABLE * len(counts), _LEAST_ROWS * len(counts))
    shares = [0] * len(counts)
    order = sorted(range(len(counts)), key=lambda index: counts[index])
    for done, index in enumerate(order):
        shares[index] = min(counts[index], left // (len(counts) - done))
        left -= shares[index]
    return shares


def _drawn(table: Table, most_rows: int) -> RenderableType:
    from rich import box
    from rich.table import Table as RichTable

    more = len(table.rows) - most_rows
    title = table.title + (f" ({more} more do not fit)" if more > 0 else "")
    drawn = RichTable(
        title=title,
        title_justify="left",
        title_style="bold red" if table.is_alarming else "bold",
        box=box.SIMPLE_HEAD,
        header_style="dim",
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    for name in table.columns:
        right = name.startswith(" ")
        drawn.add_column(name.strip(), justify="right" if right else "left", no_wrap=True)
    for row in table.rows[:most_rows]:
        drawn.add_row(*row)
    return drawn
