"""Segments taken out of a log whose files stay for a while, for readers that still hold a slice of them."""

from headrace.log.segments.segment import Segment


class RetiredSegments:
    """Retired segments, each with the time from which its files may be removed."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, Segment]] = []

    def add(self, segment: Segment, until_ms: int) -> None:
        """Keep a segment's files until that time."""
        self._entries.append((until_ms, segment))

    def take_due(self, now_ms: int) -> list[str]:
        """Paths of the files whose time has come; the caller removes them."""
        due = [segment for until_ms, segment in self._entries if until_ms <= now_ms]
        self._entries = [entry for entry in self._entries if entry[0] > now_ms]
        paths: list[str] = []
        for segment in due:
            segment.close()
            paths += [file.path for file in segment.files()]
        return paths

    def close(self) -> None:
        """Give the descriptors back."""
        for _, segment in self._entries:
            segment.close()
