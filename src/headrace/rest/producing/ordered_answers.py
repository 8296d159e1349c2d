"""Answers to records that come in any order and are given in the order of the records. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial


class OrderedAnswers:
    """A place for every record, to be filled later; `take` gives the answers that are next in order."""

    def __init__(self, on_ready: Callable[[], None]) -> None:
        self._on_ready = on_ready
        self._places: deque[list[bytes | None]] = deque()
        self.waiting = 0  # records without an answer
        self.ready_bytes = 0  # of answers that have come

    def __len__(self) -> int:
        """Records whose answer has not been taken."""
        return len(self._places)

    def place(self) -> Callable[[bytes], None]:
        """A place for the next record; call it with the answer."""
        place: list[bytes | None] = [None]
        self._places.append(place)
        self.waiting += 1
        return partial(self._fill, place)

    def take(self) -> list[bytes]:
        """The answers up to the first that is missing."""
        taken = []
        while self._places and self._places[0][0] is not None:
            [answer] = self._places.popleft()
            assert answer is not None
            taken.append(answer)
            self.ready_bytes -= len(answer)
        return taken

    def _fill(self, place: list[bytes | None], answer: bytes) -> None:
        place[0] = answer
        self.waiting -= 1
        self.ready_bytes += len(answer)
        if self._places and self._places[0] is place:
            self._on_ready()
