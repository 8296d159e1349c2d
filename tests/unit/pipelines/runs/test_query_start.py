"""A query whose Python process came too late is started again; nothing else is."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from headrace.pipelines.runs.query_start import start_patiently

LATE = "[STREAM_FAILED] terminated with exception: Python worker failed to connect back."


@dataclass
class FakeQuery:
    """Initializes for some polls, then runs or has failed."""

    polls: int = 2
    error: str | None = None
    slept: list[float] = field(default_factory=list)

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return len(self.slept) < self.polls or self.error is None

    @property
    def status(self) -> dict[str, Any]:
        is_new = len(self.slept) < self.polls
        return {"message": "Initializing sources" if is_new else "Getting offsets"}

    def exception(self) -> Exception | None:
        return None if self.error is None else Exception(self.error)


@pytest.mark.parametrize(
    ("errors", "starts"),
    [([None], 1), ([LATE, None], 2), ([LATE, LATE, LATE, None], 3), (["no such topic", None], 1)],
)
def test_attempts(errors: list[str | None], starts: int) -> None:
    queries = [FakeQuery(error=error) for error in errors]
    begun: list[FakeQuery] = []

    def start() -> Any:
        begun.append(queries[len(begun)])
        return begun[-1]

    def sleep(pause_s: float) -> None:
        begun[-1].slept.append(pause_s)

    found = start_patiently(start, sleep=sleep)
    assert len(begun) == starts
    assert cast(Any, found) is begun[-1]
    assert all(len(each.slept) == each.polls for each in begun), "its sources are waited for"
