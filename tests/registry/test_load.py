"""Many clients at once: every registration is answered, ids are unique, versions have no gaps.

`HEADRACE_REGISTRY_CLIENTS=1000 HEADRACE_REGISTRY_SCHEMAS=10000` is the long round.
"""

import asyncio
import json
import os
import time

import pytest

from bench.beside_kafka.process_cost import cpu_seconds
from tests.registry.registrations import Acknowledged, check
from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess

CLIENTS = int(os.environ.get("HEADRACE_REGISTRY_CLIENTS", "100"))
SCHEMAS = int(os.environ.get("HEADRACE_REGISTRY_SCHEMAS", "400"))
SUBJECTS = 20  # fewer than clients, so that many register in one subject at once


class Client:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def run(self, numbers: list[int], acknowledged: Acknowledged) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            for number in numbers:
                subject = f"load-{number % SUBJECTS}"
                text = json.dumps({"type": "fixed", "name": f"F{number}", "size": 1})
                status, body = await self._register(reader, writer, subject, text)
                assert status == 200, body
                acknowledged[subject, text] = (body["id"], body["version"])
        finally:
            writer.close()

    async def _register(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, subject: str, text: str
    ) -> tuple[int, dict[str, int]]:
        body = json.dumps({"schema": text}).encode()
        head = f"POST /subjects/{subject}/versions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        lines = answer.decode().lower().split("\r\n")
        (length,) = [int(line.partition(":")[2]) for line in lines if "content-length" in line]
        return int(lines[0].split()[1]), json.loads(await reader.readexactly(length))


@pytest.mark.timeout(120 + SCHEMAS // 10)
def test_many_clients_register_at_once(
    broker: HeadraceProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    properties = {"kafkastore.topic": "_load", "schema.registry.group.id": "load"}
    brokers = f"127.0.0.1:{broker.port}"
    with RegistryProcess(
        tmp_path_factory.mktemp("load"), brokers, properties=properties
    ) as registry:
        registry.await_primary()
        registry.ask("PUT", "/config", {"compatibility": "NONE"})
        acknowledged: Acknowledged = {}

        async def register_all() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(CLIENTS):
                    numbers = list(range(number, SCHEMAS, CLIENTS))
                    group.create_task(Client(registry.port).run(numbers, acknowledged))

        started, used_s = time.monotonic(), cpu_seconds(registry.pid)
        asyncio.run(register_all())
        seconds = time.monotonic() - started
        used_s = cpu_seconds(registry.pid) - used_s
        figures = f"{seconds:.1f} s, of which {used_s:.1f} s CPU of the registry"
        print(f"{SCHEMAS} schemas by {CLIENTS} clients: {figures}")  # noqa: T201 - with -s
        assert len(acknowledged) == SCHEMAS
        check(registry, acknowledged)
