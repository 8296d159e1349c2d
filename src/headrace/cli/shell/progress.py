"""How far long work is, on a terminal: done, rate, time left. In a pipe: nothing.

It writes to stderr, one line that is written over again and taken away at the end, so that results stay clean.
"""

import shutil
import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

_REDRAW_S = 0.1
_BAR_CELLS = 20
_CLEAR_LINE = "\r\x1b[K"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Progress:
    """The line. Use it in a `with`."""

    def __init__(
        self,
        label: str,
        total: int,
        *,
        unit: str = "",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`unit` is what is counted, `bytes` for amounts that are told as MiB; `total` 0 if nobody knows."""
        self._label = label
        self._total = total
        self._unit = unit
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._started_s = self._drawn_s = clock()
        self._is_drawn = False
        self._is_shown = self._stream.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Make room for something that stays; the next update draws the line again."""
        if self._is_drawn:
            self._is_drawn = False
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()

    def update(self, done: int) -> None:
        """So much is done."""
        if not self._is_shown:
            return
        now_s = self._clock()
        if now_s - self._drawn_s < _REDRAW_S:
            return
        self._drawn_s = now_s
        self._is_drawn = True
        line = progress_line(
            self._label,
            done,
            self._total,
            unit=self._unit,
            elapsed_s=now_s - self._started_s,
        )
        columns = shutil.get_terminal_size().columns
        self._stream.write(_CLEAR_LINE + line[: columns - 1])
        self._stream.flush()


def progress_line(label: str, done: int, total: int, *, unit: str, elapsed_s: float) -> str:
    """`label [####----] 45 % 1,234 records, 56/s, 0:12 left`."""
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    rate_unit = unit if unit == "bytes" else ""
    parts = [f"{_amount(done, unit)}, {_amount(rate, rate_unit)}/s"]
    if total > 0:
        part = min(done / total, 1.0)
        filled = int(part * _BAR_CELLS)
        bar = "#" * filled + "-" * (_BAR_CELLS - filled)
        label = f"{label} [{bar}] {int(part * 100):3} %"
        if rate > 0:
            parts.append(f"{_duration(max(total - done, 0) / rate)} left")
    return f"{label}  {', '.join(parts)}"


def _amount(number: float, unit: str) -> str:
    if unit != "bytes":
        return f"{number:,.0f} {unit}".rstrip()
    for name in _UNITS:
        if number < 1024 or name == _UNITS[-1]:
            break
        number /= 1024
    return f"{number:.0f} {name}" if name == "B" else f"{number:.1f} {name}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
