"""Paths with a context in front, and paths with an alias."""

import pytest

from headrace.registry.http.paths import rewritten


def same(subject: str) -> str:
    return subject


@pytest.mark.parametrize(
    ("path", "query", "expected", "expected_query"),
    [
        ("/subjects", "", "/subjects", ""),
        ("/subjects/", "a=1", "/subjects", "a=1"),
        ("/contexts", "", "/contexts", ""),
        ("/contexts/.", "", "/contexts", ""),
        ("/contexts/.c", "", "/contexts/:.c:", ""),
        ("/contexts/:.c:", "", "/contexts/:.c:", ""),
        ("/contexts/.c/subjects", "", "/subjects", "subjectPrefix=%3A.c%3A"),
        ("/contexts/.c/subjects", "subjectPrefix=a", "/subjects", "subjectPrefix=%3A.c%3Aa"),
        ("/contexts/.c/subjects/a/versions", "", "/subjects/:.c:a/versions", ""),
        ("/contexts/.c/subjects/a%2Fb", "", "/subjects/:.c:a%2Fb", ""),
        ("/contexts/.c/subjects/:.d:a", "", "/subjects/:.d:a", ""),
        ("/contexts/./subjects/a", "", "/subjects/a", ""),
        ("/contexts/.c/schemas/ids/1", "", "/schemas/ids/1", "subject=%3A.c%3A"),
        ("/contexts/.c/config", "", "/config/:.c:", ""),
        ("/contexts/./config", "", "/config", ""),
        ("/contexts/.c/mode/a", "", "/mode/:.c:a", ""),
        (
            "/contexts/.c/compatibility/subjects/a/versions",
            "verbose=true",
            "/compatibility/subjects/:.c:a/versions",
            "verbose=true",
        ),
    ],
)
def test_contexts_in_front(path: str, query: str, expected: str, expected_query: str) -> None:
    assert rewritten(path, query, same) == (expected, expected_query)


def test_aliases() -> None:
    def replace(subject: str) -> str:
        return {"a": "b", ":.c:a": ":.c:b"}.get(subject, subject)

    assert rewritten("/subjects/a/versions/1", "", replace)[0] == "/subjects/b/versions/1"
    assert rewritten("/compatibility/subjects/a/versions", "", replace)[0] == (
        "/compatibility/subjects/b/versions"
    )
    assert rewritten("/contexts/.c/subjects/a", "", replace)[0] == "/subjects/:.c:b"
    assert rewritten("/schemas/ids/1", "subject=a&format=x", replace)[1] == "subject=b&format=x"
    assert rewritten("/config/a", "", replace)[0] == "/config/a"
