"""Brokers with settings of a test's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.headrace_process import HeadraceProcess

StartBroker = Callable[..., HeadraceProcess]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Start a broker: start_broker({"max.connections": "4"}). It is stopped, and must stop, at the end."""
    with ExitStack() as stack:

        def start(properties: dict[str, str] | None = None) -> HeadraceProcess:
            process = HeadraceProcess(tmp_path / "broker", properties=properties)
            return stack.enter_context(process)

        yield start
