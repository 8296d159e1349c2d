"""The examples on the pages of docs/formats that speak of the log."""

import re
from pathlib import Path

_FORMATS = Path(__file__).parents[2] / "docs" / "formats"


def hex_examples(page: str) -> list[bytes]:
    """Each block marked `hex`: bytes up to two spaces in a row, a remark behind them."""
    blocks = re.findall(
        r"^```hex\n(.*?)^```$", (_FORMATS / page).read_text(), re.MULTILINE | re.DOTALL
    )
    return [
        b"".join(bytes.fromhex(line.partition("  ")[0]) for line in block.splitlines())
        for block in blocks
    ]


def text_example(page: str, name: str) -> bytes:
    """The block marked `text` with a file's name."""
    block = re.search(
        rf"^```text {re.escape(name)}\n(.*?)^```$",
        (_FORMATS / page).read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert block is not None, f"{page} has no example of {name}"
    return block[1].encode()
