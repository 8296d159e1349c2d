"""Registrations under load: threads that register, and what must be true of all that was acknowledged."""

import json
import threading
from typing import Any

from tests.support.registry_process import RegistryProcess

Acknowledged = dict[tuple[str, str], tuple[int, int]]  # (subject, schema): (id, version)


class Writer(threading.Thread):
    """Registers versions of one subject, one after the other, at whichever instance answers."""

    def __init__(self, number: int, instances: list[RegistryProcess]) -> None:
        super().__init__(name=f"writer-{number}")
        self._subject = f"s{number}"
        self._instances = instances
        self._is_over = threading.Event()
        self.acknowledged: Acknowledged = {}
        self.refusals: set[str] = set()

    def end(self) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        number = turn = 0
        while not self._is_over.is_set():
            fields = [
                {"name": f"f{each}", "type": "int", "default": 0} for each in range(number % 40)
            ]
            schema = {"type": "record", "name": f"R{number // 40}", "fields": fields}
            text = json.dumps(schema)
            turn += 1
            try:
                status, body = self._instances[turn % len(self._instances)].register(
                    self._subject, text
                )
            except OSError:
                self._is_over.wait(0.05)
                continue
            if status == 200:
                self.acknowledged[self._subject, text] = (body["id"], body["version"])
                number += 1
            else:
                self.refusals.add(f"{status} {body['message'][:60]}")
                assert status == 500, body
                self._is_over.wait(0.05)


def check(instance: RegistryProcess, acknowledged: Acknowledged) -> None:
    """Every acknowledged registration is there with its id and version, ids are unique, versions have no gaps."""
    texts: dict[int, str] = {}
    stored = {}
    for each in _all_schemas(instance):
        stored[each["subject"], each["version"]] = (each["id"], json.loads(each["schema"]))
        assert texts.setdefault(each["id"], each["schema"]) == each["schema"]
    assert len(set(texts.values())) == len(texts)
    for (subject, text), (schema_id, version) in acknowledged.items():
        assert stored[subject, version] == (schema_id, json.loads(text))
    for subject in {subject for subject, _ in acknowledged}:
        numbers = sorted(number for name, number in stored if name == subject)
        assert numbers == list(range(1, len(numbers) + 1))


def _all_schemas(instance: RegistryProcess) -> list[dict[str, Any]]:
    """One answer has at most a thousand."""
    found: list[dict[str, Any]] = []
    while page := instance.ask("GET", f"/schemas?offset={len(found)}")[1]:
        found += page
    return found
