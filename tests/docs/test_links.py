"""Links on our pages lead to files and headings that are there."""

import re

import pytest

from tests.docs.pages import ROOT, all_pages

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The headings of a page as GitHub names them."""
    titles = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*all_pages(), "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = _FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    lost = []
    for target in _LINK.findall(text):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://", "mailto:")):
            continue
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            lost.append(target)
    assert lost == []
