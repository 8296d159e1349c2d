"""The media type of an answer, by what the client accepts."""

import pytest

from headrace.registry.http.answers import MEDIA_TYPE, accepted


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", MEDIA_TYPE),
        ("*/*", MEDIA_TYPE),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("application/vnd.schemaregistry.v1+json, application/json; q=0.5", MEDIA_TYPE),
        ("application/json;q=0.4, application/vnd.schemaregistry+json;q=0.9", "application/vnd.schemaregistry+json"),
        ("text/html", None),
        ("application/json;q=0", None),
        ("text/html, */*;q=0.1", MEDIA_TYPE),
    ],
)  # fmt: skip
def test_media_types(accept: str, chosen: str | None) -> None:
    assert accepted(accept) == chosen
