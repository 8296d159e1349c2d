"""The OpenAPI document of operations."""

from typing import Any

import msgspec

from headrace.registry.http.openapi import document
from headrace.registry.http.operations import Operation, Query

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class Body(msgspec.Struct, rename="camel"):
    """A body."""

    full_name: str


async def endpoint(_: Any) -> Any:
    raise AssertionError


GET = Operation(
    "GET", "/things/{id}/{name}", endpoint, "A thing.", list[Body],
    query=(Query("limit", "how many", int), Query("tag", "tags", is_list=True)), errors=(409,),
)  # fmt: skip
PUT = Operation("PUT", "/things/{id}/{name}", endpoint, "Change it.", int, body=Body)
DELETE = Operation("DELETE", "/things", endpoint, "Delete them.", None, status=204)


def test_operations_of_one_path_stand_together() -> None:
    paths = document([GET, PUT, DELETE])["paths"]
    assert {path: set(methods) for path, methods in paths.items()} == {
        "/things/{id}/{name}": {"get", "put"},
        "/things": {"delete"},
    }


def test_parameters_have_types() -> None:
    parameters = document([GET])["paths"][GET.path]["get"]["parameters"]
    assert [(each["name"], each["in"], each["schema"]) for each in parameters] == [
        ("id", "path", {"type": "integer"}),
        ("name", "path", {"type": "string"}),
        ("limit", "query", {"type": "integer"}),
        ("tag", "query", {"type": "array", "items": {"type": "string"}}),
    ]


def test_bodies_are_components() -> None:
    found = document([GET, PUT])
    ref = {"$ref": "#/components/schemas/Body"}
    methods = found["paths"][GET.path]
    assert methods["put"]["requestBody"]["content"][MEDIA_TYPE]["schema"] == ref
    answered = methods["get"]["responses"]["200"]["content"][MEDIA_TYPE]["schema"]
    assert answered == {"type": "array", "items": ref}
    assert found["components"]["schemas"]["Body"]["required"] == ["fullName"]


def test_refusals_are_documented() -> None:
    methods = document([GET, PUT, DELETE])["paths"]
    assert "409" in methods[GET.path]["get"]["responses"]
    assert "415" in methods[GET.path]["put"]["responses"]
    assert "415" not in methods[GET.path]["get"]["responses"]
    assert "content" not in methods["/things"]["delete"]["responses"]["204"]
