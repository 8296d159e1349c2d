"""Which names of groups, consumer instances and topics may go to Kafka. Pure.

librdkafka takes a name as a C string that ends at the first NUL, removes blanks at the beginning of a group's name, and
ends the process where no group's name is left. So a name that it would change is refused here: it would be taken for
another group's or topic's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from headrace.rest import errors

MAX_BYTES: Final = 2**15 - 1  # of a string in Kafka's protocol
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_CONTROL: Final = "Cc"
_NOT_UTF_8: Final = "\ufffd"  # what a path has in place of bytes that are not UTF-8


def require_group(name: str) -> None:
    """Raises RestError where a consumer could not be a member of a group of this name."""
    _require("group", name)


def require_instance(name: str) -> None:
    """Raises RestError where a consumer instance cannot have this name."""
    _require("consumer instance", name)


def is_topic(name: str) -> bool:
    """Whether a topic can have this name."""
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")


def require_topics(names: Iterable[str]) -> None:
    """Raises RestError where there can be no topic of one of these names."""
    for name in names:
        if not is_topic(name):
            raise errors.unprocessable(
                f"Invalid topic name {_shown(name)}: a topic's name has 1 to 249 of the characters "
                "a-z, A-Z, 0-9, '.', '_' and '-', and is neither '.' nor '..'."
            )


def require_short(names: Iterable[str]) -> None:
    """Raises RestError where a name does not fit into Kafka's protocol: a broker would close the connection."""
    for name in names:
        if is_too_long(name, MAX_BYTES):
            raise errors.unprocessable(
                f"The name {_shown(name)} is longer than {MAX_BYTES} bytes, the most in Kafka."
            )


def is_too_long(text: str, limit: int) -> bool:
    """Whether a text has more bytes than a limit."""
    return len(text) > limit or len(text.encode(errors="replace")) > limit


def has_control_character(text: str) -> bool:
    """Whether there is a NUL, a line feed or the like in a text."""
    return any(unicodedata.category(each) == _CONTROL for each in text)


def _require(what: str, name: str) -> None:
    require_short([name])
    if not name.strip():
        problem = "is blank"
    elif name != name.strip():
        problem = "begins or ends with a blank"
    elif has_control_character(name):
        problem = "has a control character"
    elif _NOT_UTF_8 in name:
        problem = "is not UTF-8"
    else:
        return
    raise errors.unprocessable(f"Invalid {what} name {_shown(name)}: it {problem}.")


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 100 else name[:100] + "...")
