"""The OpenAPI document holds together."""

import re
from collections.abc import Iterator
from typing import Any

from headrace.rest.http.openapi import document


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_references_lead_somewhere() -> None:
    known = document()["components"]["schemas"]
    for reference in references(document()):
        assert reference.removeprefix("#/components/schemas/") in known


def test_parameters_of_a_path_are_described() -> None:
    for path, methods in document()["paths"].items():
        for operation in methods.values():
            named = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert named == re.findall(r"\{(\w+)\}", path)
            assert operation["summary"]
            assert "404" in operation["responses"]
