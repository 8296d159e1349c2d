"""The demo's last steps: a Spark pipeline from topic to topic, late events and all, compared with plain Python, and drawn.

The order makes the result certain. The pipeline first reads everything that was there before it; when it has written the windows
that are closed by then, its watermark is known. Only then the latecomers are sent; when it has read those, an event of the next
day closes what is still open.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace.cli.demo import shop
from headrace.cli.demo.chart import svg_bars, text_bars
from headrace.cli.demo.stage import Stage, require
from headrace.cli.demo.traffic import read_everything, send
from headrace.cli.local.local_servers import ServerProcess, Stopped
from headrace.cli.shell.command_line import Failure

_PIPELINE: Final = Path(__file__).with_name("shop_pipeline.py")
_RESULT: Final = "shop-windows"
_RESULT_PARTITIONS: Final = 3
_GROUP: Final = "shop-pipeline"  # as the pipeline's file says
_LATECOMERS: Final = 1_000
_SPARK_S: Final = 300.0
_LOOK_AGAIN_S: Final = 0.3


class PipelineRun:
    """`headrace pipeline run` as a child; none is left at the end of the `with`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._process = ServerProcess("the pipeline", stage.directory / "logs" / "pipeline.log")

    def __enter__(self) -> PipelineRun:
        self._process.launch(
            [
                *(sys.executable, "-m", "headrace.cli.main", "pipeline", "run", str(_PIPELINE)),
                *("--bootstrap-server", self._stage.address, "--master", "local[2]"),
                *("--state-dir", str(self._stage.directory / "pipelines")),
            ]
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.signal(signal.SIGTERM)
        self._process.wait_for_end(30)

    def wait_for_rows(self, wanted: int, what: str) -> list[shop.Row]:
        """The rows of the result, once there are as many as wanted."""
        deadline = time.monotonic() + _SPARK_S
        while True:
            rows = self.rows()
            if len(rows) >= wanted:
                return rows
            self._go_on(deadline, f"{what}; {len(rows)} of {wanted} rows are there")

    def rows(self) -> list[shop.Row]:
        stage = self._stage
        stored = read_everything(stage.address, _RESULT, range(_RESULT_PARTITIONS), stage.stop)
        rows = [shop.row_of(value) for value in stored.elements()]
        return sorted(rows, key=lambda row: (row.window_s, row.kind))

    def wait_until_all_is_read(self, topic: str, partitions: int) -> None:
        """Wait until the pipeline's group is at the end of a topic."""
        deadline = time.monotonic() + _SPARK_S
        while self._lag(topic, partitions) != 0:
            self._go_on(deadline, f"the pipeline reads all of {topic}")

    def _lag(self, topic: str, partitions: int) -> int | None:
        from headrace.client.admin.admin import Admin
        from headrace.client.admin.group_offsets import committed_offsets
        from headrace.client.admin.partitions import FoundOffset, OffsetSpec, list_offsets
        from headrace.errors import HeadraceError
        from headrace.ids import TopicPartition

        wanted = [TopicPartition(topic, number) for number in range(partitions)]
        lag = 0
        try:
            with Admin(self._stage.address, timeout_s=5) as admin:
                ends = list_offsets(admin, wanted, OffsetSpec.LATEST)
                committed = committed_offsets(admin, _GROUP)
        except HeadraceError:
            return None
        for each in wanted:
            end, place = ends.get(each), committed.get(each)
            if not isinstance(end, FoundOffset) or place is None:
                return None
            lag += end.offset - place.offset
        return lag

    def _go_on(self, deadline: float, what: str) -> None:
        if self._stage.stop.is_made:
            raise Stopped
        if not self._process.is_running:
            raise Failure("the pipeline ended by itself", why=self._process.log_tail())
        if time.monotonic() > deadline:
            raise Failure(f"not within {_SPARK_S:.0f} s: {what}", why=self._process.log_tail())
        time.sleep(_LOOK_AGAIN_S)


def count_windows(
    stage: Stage, stream: Sequence[shop.Event], topic: str, partitions: int
) -> list[shop.Row]:
    """Run the pipeline over the events and some latecomers; its result, which is what plain Python says."""
    stage.create_topic(_RESULT, _RESULT_PARTITIONS)
    watermark = shop.watermark_s(stream)
    newest_s = watermark + shop.WATERMARK_S
    late = shop.latecomers(len(stream), newest_s, _LATECOMERS)
    in_time = [event for event in late if not shop.is_too_late(event, watermark)]
    expected = shop.counted([*stream, *in_time])
    first = shop.closed(expected, watermark)
    begun_s = time.monotonic()
    with PipelineRun(stage) as run:
        with stage.console.status("    Spark starts, and counts what is there"):
            run.wait_for_rows(len(first), "Spark counts what is there")
            seconds = time.monotonic() - begun_s
        stage.say(
            f"a Spark pipeline counted them in {shop.WINDOW_S // 60}-minute windows,"
            f" {seconds:.0f} s after its start"
        )
        with stage.console.status("    phones come back online: late events"):
            send(stage.address, topic, late, stage.stop)
            run.wait_until_all_is_read(topic, partitions)
            closing = shop.closing_event(len(stream) + len(late))
            send(stage.address, topic, [closing], stage.stop)
            rows = run.wait_for_rows(len(expected), "Spark closes the last windows")
    require(rows == expected, difference(rows, expected))
    stage.add(
        f"{len(in_time):,} late events counted, {len(late) - len(in_time):,} too late ones left out;"
        " plain Python agrees:"
    )
    return rows


def difference(rows: Sequence[shop.Row], expected: Sequence[shop.Row]) -> str:
    """The first thing that is not as it should be."""
    for ours, theirs in zip(rows, expected, strict=False):
        if ours != theirs:
            return f"Spark counts {ours}, plain Python {theirs}"
    return f"Spark wrote {len(rows)} rows, plain Python counts {len(expected)}"


def draw(stage: Stage, rows: Sequence[shop.Row], picture: Path) -> None:
    """The chart, in the terminal and as a picture."""
    bars = list(shop.by_window(rows))
    for label, bar, numbers in text_bars(bars):
        stage.add(f"  {label}  [green]{bar:<32}[/] {numbers}")
    total = sum(row.events for row in rows)
    title = "What happened in the shop, in windows of five minutes"
    remark = (
        f"{total:,} events, counted by a Spark pipeline and by plain Python; takings above the bars"
    )
    try:
        picture.write_text(svg_bars(title, remark, bars), encoding="utf-8")
    except OSError as error:
        raise Failure(
            f"cannot write the picture to {picture}",
            why=error.strerror or str(error),
            hint="choose another place with --picture",
        ) from error
    stage.add(f"the same as a picture: [bold]{picture}[/]")
