"""Which topics an option means: Kafka's regular expressions, and the nearest name where nothing matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import Failure, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.client.admin.admin import Admin

# Options of `topics --describe` that leave only some partitions.
FILTERS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)


def matching_topics(
    admin: Admin, pattern: str | None, *, exclude_internal: bool, must_exist: bool
) -> list[str]:
    """The topics that `--topic` means, in order. Raises Failure."""
    from headrace.client.admin.topics import list_topics

    topics = list_topics(admin)
    names = [each.name for each in topics if not (exclude_internal and each.is_internal)]
    if pattern is None:
        return names
    matches = include_list(pattern)
    found = [name for name in names if matches(name)]
    if not found and must_exist and pattern:
        raise Failure(
            f"Topic '{pattern}' does not exist as expected",
            hint=nearest(pattern, names) or "'headrace topics --list' shows what there is",
        )
    return found


def include_list(pattern: str) -> Callable[[str], bool]:
    """Kafka's form of a choice of topics: a regular expression in which a comma is an `or`."""
    import re

    text = pattern.strip().strip("\"'").replace(",", "|").replace(" ", "")
    try:
        expression = re.compile(text)
    except re.error as wrong:
        raise Failure(f"{pattern} is an invalid regex.", why=str(wrong)) from wrong
    return lambda name: expression.fullmatch(name) is not None
