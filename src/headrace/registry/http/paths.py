"""Paths of requests: `/contexts/.ctx/…` means subjects of that context, and an alias means another subject. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from headrace.registry.state.names import is_qualified, parse_subject

_SETTINGS: Final = ("config", "mode")
_LISTINGS: Final = ("schemas", "subjects")
Replace = Callable[[str], str]  # the subject that a name means, once aliases are replaced


def rewritten(path: str, query: str, replace: Replace) -> tuple[str, str]:
    """A path, still encoded, and a query without a context in front and without aliases."""
    segments = [each for each in path.split("/") if each]
    context = None
    if len(segments) > 1 and segments[0] == "contexts":
        context = _context(unquote(segments[1]))
        segments = segments[2:]
        if not segments:
            return "/contexts" + (f"/{_quoted(context)}" if context else ""), query
    if context is not None:
        segments, query = _in_context(segments, query, context)
    for index, segment in enumerate(segments[:-1]):
        if segment == "subjects" and segments[0] in ("subjects", "compatibility"):
            segments[index + 1] = _quoted(replace(unquote(segments[index + 1])))
            break
    if segments[:2] == ["schemas", "ids"] and "subject=" in query:
        query = _with(query, "subject", replace)
    return "/" + "/".join(segments), query


def _context(text: str) -> str:
    """A context between colons, however it was written; empty for the default one."""
    name = text if is_qualified(text) else f":{text}:"
    return parse_subject(name).qualified_context


def _in_context(segments: list[str], query: str, context: str) -> tuple[list[str], str]:
    def qualify(text: str) -> str:
        return text if is_qualified(text) else context + text

    found = list(segments)
    if found[0] in _SETTINGS:
        if len(found) > 1:
            found[1] = _quoted(qualify(unquote(found[1])))
        elif context:
            found.append(_quoted(context))
    for index, segment in enumerate(segments[:-1]):
        if segment == "subjects":
            found[index + 1] = _quoted(qualify(unquote(segments[index + 1])))
    if found[:2] == ["schemas", "ids"]:
        query = _with(query, "subject", qualify, add=True)
    elif len(found) == 1 and found[0] in _LISTINGS:
        query = _with(query, "subjectPrefix", qualify, add=True)
    return found, query


def _with(query: str, name: str, change: Replace, *, add: bool = False) -> str:
    """A query with another value for a parameter; with `add`, also where the parameter is missing."""
    pairs = parse_qsl(query, keep_blank_values=True)
    if add and all(key != name for key, _ in pairs):
        pairs.append((name, ""))
    return urlencode([(key, change(value) if key == name else value) for key, value in pairs])


def _quoted(text: str) -> str:
    return quote(text, safe=":.*")
