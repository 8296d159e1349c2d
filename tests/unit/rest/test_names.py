"""Names that reach Kafka as they are, and names that do not."""

import pytest

from headrace.rest import names
from headrace.rest.errors import RestError


@pytest.mark.parametrize("name", ["g", "a b", "é", "/%", "-", "g" * 32_767])
def test_names_of_groups_and_instances(name: str) -> None:
    names.require_group(name)
    names.require_instance(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is blank"),
        (" ", "is blank"),
        ("\t\n", "is blank"),
        ("\0", "control character"),
        ("nul\0tail", "control character"),
        ("a\nb", "control character"),
        (" lead", "begins or ends with a blank"),
        ("trail ", "begins or ends with a blank"),
        ("\x0btab", "begins or ends with a blank"),
        ("\ufffd", "not UTF-8"),
        ("g" * 32_768, "longer than 32767 bytes"),
        ("é" * 16_384, "longer than 32767 bytes"),
    ],
)
def test_names_that_would_become_others(name: str, why: str) -> None:
    with pytest.raises(RestError, match=why) as refused:
        names.require_group(name)
    assert (refused.value.status, refused.value.code) == (422, 422)
    assert len(refused.value.message) < 600
    with pytest.raises(RestError, match=why):
        names.require_instance(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "^a", "nul\0tail", "é", "t" * 250, "t\n"])
def test_names_that_no_topic_has(name: str) -> None:
    with pytest.raises(RestError, match="Invalid topic name"):
        names.require_topics(["good", name])


def test_names_of_topics() -> None:
    names.require_topics(["t", "_.-", "...", "t" * 249])


def test_long_names_of_anything() -> None:
    names.require_short([" ", "é" * 16_383])
    with pytest.raises(RestError, match="longer"):
        names.require_short(["a", "é" * 16_384])
