"""References within and between JSON documents: what a `$ref` leads to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

Json = Any


class Document(NamedTuple):
    """A document that references lead into."""

    content: Json


class Place(NamedTuple):
    """A schema, and the document that its references start from."""

    schema: Json
    document: Document

    def at(self, schema: Json) -> Place:
        """Another schema of the same document."""
        return Place(schema, self.document)


class Documents:
    """A schema and the documents that it refers to, by the names of its references."""

    def __init__(self, root: Json, others: Mapping[str, Json]) -> None:
        self.root = Document(root)
        self._others = {name: Document(other) for name, other in others.items()}
        for other in others.values():
            if isinstance(other, dict):
                for key in ("$id", "id"):
                    if isinstance(other.get(key), str):
                        self._others.setdefault(other[key].rstrip("#"), Document(other))

    def find(self, ref: str, document: Document) -> Place | None:
        """What a reference in `document` leads to."""
        address, _, fragment = ref.partition("#")
        content = document.content
        own = content.get("$id", content.get("id")) if isinstance(content, dict) else None
        if address and address != own:
            other = self._others.get(address)
            if other is None and isinstance(own, str):
                other = self._others.get(own.rpartition("/")[0] + "/" + address)
            if other is None:
                return None
            document = other
        return _pointed(document, unquote(fragment))

    def resolve(self, place: Place) -> Place:
        """The schema behind `$ref`s."""
        for _ in range(100):
            ref = place.schema.get("$ref") if isinstance(place.schema, dict) else None
            if not isinstance(ref, str):
                return place
            found = self.find(ref, place.document)
            if found is None:
                return place.at(True)
            place = found
        return place.at(True)


def _pointed(document: Document, fragment: str) -> Place | None:
    if not fragment.startswith("/"):
        if not fragment:
            return Place(document.content, document)
        return _anchored(document, fragment)
    found = document.content
    for part in fragment[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return Place(found, document)


def _anchored(document: Document, anchor: str) -> Place | None:
    stack = [document.content]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            if each.get("$anchor") == anchor or f"#{anchor}" in (each.get("$id"), each.get("id")):
                return Place(each, document)
            stack += each.values()
        elif isinstance(each, list):
            stack += each
    return None
