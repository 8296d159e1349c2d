"""The schema registry as a process, and a small client for its HTTP API."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from tests.support.http_program_process import HttpProgramProcess, Json


class RegistryProcess(HttpProgramProcess):
    """A registry; `kill` and `start` again keep its address."""

    def __init__(
        self, directory: Path, brokers: str, *, properties: Mapping[str, str] | None = None
    ) -> None:
        settings = {"kafkastore.bootstrap.servers": brokers, **(properties or {})}
        super().__init__(directory, "schema-registry-start", settings)

    def register(self, subject: str, schema: Json, **more: Json) -> tuple[int, Json]:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return self.ask("POST", path, {"schema": text, **more})

    def primary(self) -> str | None:
        """The address of the primary as this instance knows it."""
        _, body = self.ask("GET", "/healthz")
        found: str | None = body["primary"]
        return found

    def await_primary(self, *, other_than: str | None = None, timeout_s: float = 60) -> str:
        """Wait until the instance knows a primary, and that primary writes."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            primary = self.primary()
            if primary is not None and primary != other_than:
                status, _ = self.ask("PUT", "/config", {"compatibility": "BACKWARD"})
                if status == 200:
                    return primary
            time.sleep(0.05)
        raise AssertionError(f"no primary within {timeout_s} s: {self.log_tail()}")
