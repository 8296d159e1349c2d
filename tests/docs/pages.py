"""What stands in fences on our pages: commands, programs, and what is only shown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMANDS = frozenset({"sh", "bash", "console"})
# What begins a line that somebody would paste into a shell.
_LOOKS_LIKE_A_COMMAND = re.compile(r"^(\$ |headrace |make |bin/|\.venv/|pip |python )")
_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fence of a page. `line` is where it begins."""

    page: str
    line: int
    language: str
    text: str

    @property
    def is_commands(self) -> bool:
        return self.language in COMMANDS

    @property
    def looks_like_commands(self) -> bool:
        return any(_LOOKS_LIKE_A_COMMAND.match(line) for line in self.text.splitlines())


def blocks_of(page: str) -> list[Block]:
    """The fences of a page, in its order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start()) + 1,
            language=found[1].split(" ")[0],
            text=found[2],
        )
        for found in _FENCED.finditer(text)
    ]


def all_pages() -> Iterator[str]:
    """README.md and everything under docs/."""
    yield "README.md"
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield path.relative_to(ROOT).as_posix()
