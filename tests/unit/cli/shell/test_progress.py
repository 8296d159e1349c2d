import io

import pytest

from headrace.cli.shell.progress import Progress, progress_line


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("done", "total", "unit", "elapsed_s", "line"),
    [
        (50, 200, "records", 5.0, "x [#####---------------]  25 %  50 records, 10/s, 0:15 left"),
        (2048, 4096, "bytes", 1.0, "x [##########----------]  50 %  2.0 KiB, 2.0 KiB/s, 0:01 left"),
        (0, 10, "", 0.0, "x [--------------------]   0 %  0, 0/s"),
        (12, 10, "", 1.0, "x [####################] 100 %  12, 12/s, 0:00 left"),
        (7, 0, "records", 2.0, "x  7 records, 4/s"),
        (1, 7201, "", 1.0, "x [--------------------]   0 %  1, 1/s, 2:00:00 left"),
    ],
)  # fmt: skip
def test_the_line(done: int, total: int, unit: str, elapsed_s: float, line: str) -> None:
    assert progress_line("x", done, total, unit=unit, elapsed_s=elapsed_s) == line


def test_it_is_drawn_now_and_then_and_taken_away() -> None:
    now_s = 0.0
    screen = Screen()
    with Progress("x", 10, stream=screen, clock=lambda: now_s) as progress:
        progress.update(1)
        assert screen.getvalue() == ""
        now_s = 1.0
        progress.update(2)
        progress.update(3)
    assert screen.getvalue().count("x [") == 1
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_pipe_gets_nothing() -> None:
    pipe = io.StringIO()
    now_s = 0.0
    with Progress("x", 10, stream=pipe, clock=lambda: now_s) as progress:
        now_s = 5.0
        progress.update(5)
    assert pipe.getvalue() == ""
