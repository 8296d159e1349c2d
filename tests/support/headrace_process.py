"""Headrace itself as a broker process, in the same shape as `ApacheKafka`, so that a test can take either."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.broker import FAST_TEST_PROPERTIES, write_properties
from tests.support.server_process import ServerProcess, free_port

READY_S = 20
STOP_S = 20


class HeadraceProcess:
    """Start on entry, stop on exit; `kill` and `start` again keep the data."""

    name = "headrace"

    def __init__(self, directory: Path, *, properties: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.data_dir = directory / "data"
        self._properties_path = directory / "server.properties"
        self._process = ServerProcess(directory / "headrace.log")
        own = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data_dir),
        }
        write_properties(
            self._properties_path, {**own, **FAST_TEST_PROPERTIES, **(properties or {})}
        )

    @property
    def ports(self) -> Mapping[int, int]:
        return {1: self.port}

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "headrace.cli.main",
            "server-start",
            str(self._properties_path),
        ]
        self._process.start(command, port=self.port, ready_s=READY_S, env=os.environ)

    def stop(self) -> None:
        self._process.stop(STOP_S)

    def kill(self) -> None:
        self._process.kill()

    def log_tail(self) -> str:
        return self._process.log_tail()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.stop(STOP_S)
