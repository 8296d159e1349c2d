"""The APIs and versions that this broker offers: computed from the table of APIs, so that it cannot lie."""

from typing import TypeAlias

OfferedVersions: TypeAlias = tuple[tuple[int, int, int], ...]
"""(API key, first version, last version), in order of the key."""
