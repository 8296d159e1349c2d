"""Turns what a program wrote to a terminal into an SVG picture, for the pages under docs/.

    .venv/bin/python -m tools.terminal_picture --run "headrace demo" docs/pictures/demo.svg
    .venv/bin/python -m tools.terminal_picture --run "headrace top" --interrupt-after 5 docs/pictures/top.svg

The program runs in a terminal of its own, so that it draws as for a person. Of one that redraws its screen, the last screen is
shown; of any other, everything it wrote that is still there at its end.
"""

import argparse
import os
import re
import shlex
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tools.pseudo_terminal import CTRL_C, PseudoTerminal

_SCREEN_BEGINS, _SCREEN_ENDS = "\x1b[?1049h", "\x1b[?1049l"
_HOME = "\x1b[H"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TOKEN = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]|[\r\n]|[^\x1b\r\n]+|\x1b")
_PATIENCE_S = 600

# Rich's own, without the fonts from the web: a picture must not depend on somebody's server.
_FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 18px; font-weight: bold; fill: #c5c8c6; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def main() -> int:
    """Run a program, draw what it wrote."""
    parser = argparse.ArgumentParser(description="Draw what a program writes to a terminal.")
    parser.add_argument("--run", required=True, help="the program and its arguments")
    parser.add_argument("--interrupt-after", type=float, help="press Ctrl-C after so many seconds")
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--title", help="what stands above it (default: the program)")
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    written = record(
        shlex.split(options.run), options.columns, options.rows, options.interrupt_after
    )
    svg = draw(written, options.columns, options.title or options.run)
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    options.picture.write_text(svg, encoding="utf-8")
    print(f"{options.picture} written")
    return 0


def record(argv: list[str], columns: int, rows: int, interrupt_after_s: float | None) -> bytes:
    """What a program writes to a terminal of this size."""
    with PseudoTerminal(argv, rows=rows, columns=columns) as terminal:
        if interrupt_after_s is not None:
            started_s = time.monotonic()
            terminal.read_until(lambda _: time.monotonic() - started_s > interrupt_after_s)
            terminal.type(CTRL_C)
        terminal.wait(_PATIENCE_S)
        return terminal.written


def visible(written: str) -> str:
    """What is to be seen at the end: the last screen, or all lines that were not taken back."""
    if _SCREEN_BEGINS in written:
        screen = written.partition(_SCREEN_BEGINS)[2].rpartition(_SCREEN_ENDS)[0]
        written = [frame for frame in screen.split(_HOME) if frame.strip()][-1].replace("^C", "")
    lines, row, is_fresh = [""], 0, True
    for token in _TOKEN.findall(written):
        match token:
            case "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            case "\r":
                is_fresh = True
            case "\x1b[1A":
                row = max(0, row - 1)
            case "\x1b[2K":
                lines[row] = ""
            case _ if _COLOUR.fullmatch(token) or not token.startswith("\x1b"):
                lines[row] = token if is_fresh and "\x1b" not in token else lines[row] + token
                is_fresh = False
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def draw(written: bytes, columns: int, title: str) -> str:
    """The picture."""
    text = Text.from_ansi(visible(written.decode(errors="replace")))
    with Path(os.devnull).open("w") as nowhere:
        console = Console(
            record=True, width=columns, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        console.print(text, no_wrap=True, crop=False)
        return console.export_svg(
            title=title, theme=MONOKAI, code_format=_FRAME, unique_id="terminal"
        )


if __name__ == "__main__":
    sys.exit(main())
