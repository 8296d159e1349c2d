"""How log records leave the process: one readable line each on a terminal, or one JSON object each.

Owns one handler at the root of the standard library's loggers; `configure` may be called again once settings are known.
Rules: a record is one line (only a traceback follows, indented), whatever a client put into it; values of settings that
are secrets are hidden, wherever they turn up; other people's loggers speak up from WARNING on.
"""

import logging
import os
import re
import sys
import time
from collections.abc import Callable
from io import TextIOWrapper
from typing import Final, TextIO

_HANDLER_NAME: Final = "headrace"
# Kafka's words for the levels; all but one fit in five characters.
_LEVEL_WORDS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_COLOURS: Final = {
    "DEBUG": "\x1b[2m",
    "WARN": "\x1b[33m",
    "ERROR": "\x1b[31m",
    "FATAL": "\x1b[1;31m",
}
_PLAIN: Final = "\x1b[0m"

_CONTROL_CHARACTERS: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    0x2028: "\\u2028",
    0x2029: "\\u2029",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): " ",
}
_CONTROL_CHARACTERS_BUT_NEWLINE: Final = {
    code: text for code, text in _CONTROL_CHARACTERS.items() if code != ord("\n")
}

# A setting's name, "=" or ":", and its value. JAAS and PEM texts have blanks and newlines: there, all that follows goes.
# Repetitions are bounded where they could otherwise be tried over and over in a long text of a client's choosing.
_SECRET_TEXTS: Final = re.compile(
    r"((?:sasl\.jaas\.config|ssl\.keystore\.key|certificate\.chain|truststore\.certificates)"
    r"""['"]?\s{0,3}[=:]\s{0,3}).+""",
    re.IGNORECASE | re.DOTALL,
)
_SECRET_WORDS: Final = re.compile(
    r"((?:password|passphrase|passwd|secret|master\.key|authorization|access_token)[\w.\-]{0,40}"
    r"""['"]?\s{0,3}[=:]\s{0,3})"""
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:Bearer |Basic )?[^\s,;)}\]]+)""",
    re.IGNORECASE,
)
_URL_PASSWORD: Final = re.compile(r"(://[^\s:/@]{0,100}:)[^\s/@]{1,200}(?=@)")
_HIDDEN: Final = r"\1[hidden]"


def configure(
    log_format: str = "text",
    level: str = "INFO",
    *,
    stream: TextIO | None = None,
    broker_id: int | None = None,
) -> None:
    """Send records to `stream`, by default to standard output, as `text` or `json`. Replaces an earlier set-up."""
    stream = sys.stdout if stream is None else stream
    if isinstance(stream, TextIOWrapper):
        # What a terminal cannot show must not cost the line.
        stream.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler(stream)
    handler.set_name(_HANDLER_NAME)
    make_line: Callable[[logging.LogRecord], str]
    if log_format == "json":
        make_line = JsonLines(broker_id)
    else:
        make_line = TextLines(broker_id, in_colour=_wants_colour(stream))
    handler.setFormatter(_Formatter(make_line))
    root = logging.getLogger()
    for earlier in [found for found in root.handlers if found.get_name() == _HANDLER_NAME]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    least = logging.getLevelNamesMapping()[level]
    logging.getLogger("headrace").setLevel(least)
    root.setLevel(max(least, logging.WARNING))


def redact(text: str) -> str:
    """The text without the values of secrets."""
    # Every expression needs one of the two; most lines of an access log have neither.
    if "=" not in text and ":" not in text:
        return text
    text = _SECRET_TEXTS.sub(_HIDDEN, text)
    text = _SECRET_WORDS.sub(_HIDDEN, text)
    return _URL_PASSWORD.sub(_HIDDEN, text)


class TextLines:
    """`2026-11-15 23:59:59.123 INFO  [broker 1] message`, in local time."""

    def __init__(self, broker_id: int | None, *, in_colour: bool) -> None:
        self._who = "" if broker_id is None else f"[broker {broker_id}] "
        self._in_colour = in_colour

    def __call__(self, record: logging.LogRecord) -> str:
        """A line, and below it the indented traceback if there is one."""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        level = _level_word(record)
        shown_level = f"{level:<5}"
        if self._in_colour and level in _COLOURS:
            shown_level = f"{_COLOURS[level]}{shown_level}{_PLAIN}"
        message = redact(record.getMessage()).translate(_CONTROL_CHARACTERS)
        if not _is_ours(record):
            message = f"{record.name}: {message}"
        line = f"{when}.{int(record.msecs):03d} {shown_level} {self._who}{message}"
        below = _exception_text(record).translate(_CONTROL_CHARACTERS_BUT_NEWLINE)
        return "\n    ".join((line, *below.splitlines()))


class JsonLines:
    """One JSON object per line, in UTC."""

    def __init__(self, broker_id: int | None) -> None:
        # Only those who ask for JSON pay for its import.
        from json import dumps

        self._dumps = dumps
        self._broker_id = broker_id

    def __call__(self, record: logging.LogRecord) -> str:
        """All of the record in one line: JSON escapes what would break it."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, object] = {
            "time": f"{when}.{int(record.msecs):03d}Z",
            "level": _level_word(record),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if self._broker_id is not None:
            entry["broker_id"] = self._broker_id
        exception = _exception_text(record)
        if exception:
            entry["exception"] = exception
        return self._dumps(entry)


class _Formatter(logging.Formatter):
    """What the standard library wants around a function."""

    def __init__(self, make_line: Callable[[logging.LogRecord], str]) -> None:
        super().__init__()
        self._make_line = make_line

    def format(self, record: logging.LogRecord) -> str:
        return self._make_line(record)


def _level_word(record: logging.LogRecord) -> str:
    return _LEVEL_WORDS.get(record.levelname, record.levelname)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name == "headrace" or record.name.startswith("headrace.")


_tracebacks: Final = logging.Formatter()


def _exception_text(record: logging.LogRecord) -> str:
    texts = []
    if record.exc_info:
        texts.append(_tracebacks.formatException(record.exc_info))
    if record.stack_info:
        texts.append(record.stack_info)
    return redact("\n".join(texts))


def _wants_colour(stream: TextIO) -> bool:
    if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()
