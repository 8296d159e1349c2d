"""The versions of one subject, by number, in ascending order. Pure.

Keeps what registrations ask of a subject at hand: how many versions are deleted, how many have references, and which is
the highest. None of these questions walks over all versions, so a subject may have many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec


class Version(msgspec.Struct, gc=False):
    """A version of a subject."""

    schema_id: int
    is_deleted: bool = False
    timestamp: int | None = None  # when its newest record was written, in milliseconds
    has_references: bool = False


class SubjectVersions(msgspec.Struct, gc=False):
    """Put and remove versions only through the methods, which keep the counts."""

    by_number: dict[int, Version] = {}
    deleted_count: int = 0
    referring_count: int = 0

    def put(self, number: int, version: Version) -> None:
        """Add a version, or replace it."""
        self.remove(number)
        is_last = number > self.highest
        self.by_number[number] = version
        if not is_last:  # imports may come in any order
            self.by_number = dict(sorted(self.by_number.items()))
        self.deleted_count += version.is_deleted
        self.referring_count += version.has_references

    def remove(self, number: int) -> Version | None:
        """Take a version away; returns it if it was there."""
        version = self.by_number.pop(number, None)
        if version is not None:
            self.deleted_count -= version.is_deleted
            self.referring_count -= version.has_references
        return version

    def delete_up_to(self, highest: int) -> None:
        """Mark versions as deleted."""
        for number, version in self.by_number.items():
            if number <= highest and not version.is_deleted:
                version.is_deleted = True
                self.deleted_count += 1

    def get(self, number: int, *, deleted: bool) -> Version | None:
        """A version; one that is marked as deleted only with `deleted`."""
        version = self.by_number.get(number)
        return None if version is None or (version.is_deleted and not deleted) else version

    def items(self, *, deleted: bool) -> dict[int, Version]:
        """A copy; versions that are marked as deleted only with `deleted`."""
        if deleted or not self.deleted_count:
            return self.by_number.copy()
        return {number: each for number, each in self.by_number.items() if not each.is_deleted}

    def has_any(self, *, deleted: bool) -> bool:
        """Whether there is a version; one that is marked as deleted counts only with `deleted`."""
        return len(self.by_number) > (0 if deleted else self.deleted_count)

    @property
    def highest(self) -> int:
        """The highest number; 0 without versions."""
        return next(reversed(self.by_number), 0)

    @property
    def latest(self) -> int | None:
        """The highest number of a version that is not marked as deleted."""
        if not self.has_any(deleted=False):
            return None
        return next(number for number in reversed(self.by_number) if not self._is_deleted(number))

    @property
    def deleted(self) -> Iterator[tuple[int, Version]]:
        """The versions that are marked as deleted, with their numbers."""
        if self.deleted_count:
            yield from (
                (number, each) for number, each in self.by_number.items() if each.is_deleted
            )

    @property
    def referring(self) -> Iterator[tuple[int, Version]]:
        """The versions whose schemas have references, with their numbers; also those marked as deleted."""
        if self.referring_count:
            yield from (
                (number, each) for number, each in self.by_number.items() if each.has_references
            )

    def _is_deleted(self, number: int) -> bool:
        return self.by_number[number].is_deleted


NO_VERSIONS: Final = SubjectVersions()  # of a subject that is not known; nobody puts any into it
