"""What stands in fences on our pages, and what is only indented: commands, programs, and what is only shown."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMANDS = "sh"
INDENTED = "indented"
# What begins a line that somebody would paste into a shell.
_LOOKS_LIKE_A_COMMAND = re.compile(r"^(\$ |headrace |make |bin/|\.venv/|pip |python )")
_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Four spaces after an empty line, as Markdown has it.
_INDENTED = re.compile(r"(?<=\n\n)((?: {4}[^\n]*\n)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fence of a page, or lines that are indented. `line` is where it begins."""

    page: str
    line: int
    language: str
    text: str

    @property
    def is_commands(self) -> bool:
        return self.language == COMMANDS

    @property
    def looks_like_commands(self) -> bool:
        return any(_LOOKS_LIKE_A_COMMAND.match(line) for line in self.text.splitlines())


def blocks_of(page: str) -> list[Block]:
    """The fences of a page, in its order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page=page, line=_line(text, found), language=found[1].split(" ")[0], text=found[2])
        for found in _FENCED.finditer(text)
    ]


def indented_blocks_of(page: str) -> list[Block]:
    """What is set apart by four spaces, outside of fences."""
    text = (ROOT / page).read_text(encoding="utf-8")
    without_fences = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [
        Block(page=page, line=_line(text, found), language=INDENTED, text=textwrap.dedent(found[1]))
        for found in _INDENTED.finditer(without_fences)
    ]


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1


def all_pages() -> Iterator[str]:
    """README.md and everything under docs/."""
    yield "README.md"
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield path.relative_to(ROOT).as_posix()
