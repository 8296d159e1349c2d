"""Parts of JSON texts as Java's libraries write them: registries identify schemas by such texts, to the letter. Pure."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Final

# An escaped character; an even number of backslashes in front of it are escaped backslashes.
_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*\\u)([0-9a-f]{4})")


def quoted(text: str) -> str:
    """A string, with capital letters in the codes of control characters."""
    written = json.dumps(text, ensure_ascii=False)
    if text.isprintable():
        return written
    return _ESCAPE.sub(lambda match: match[1] + match[2].upper(), written)


def double(value: float) -> str:
    """A number as `Double.toString` writes it: with an exponent where it is large or small."""
    if not value or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{exponent + len(digits) - 1}"
