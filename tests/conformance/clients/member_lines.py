"""How the group members of this package tell their assignment: one line of JSON with the partitions they have now."""

import json
import sys
from collections.abc import Iterable


def command(client: str, bootstrap: str, topic: str, group: str) -> list[str]:
    """The command of a member process."""
    return [
        sys.executable,
        "-m",
        "tests.conformance.clients.member",
        client,
        bootstrap,
        topic,
        group,
    ]


def write(partitions: Iterable[int]) -> None:
    """Tell the test that watches this process."""
    sys.stdout.write(json.dumps({"partitions": sorted(partitions)}) + "\n")
    sys.stdout.flush()


def read(line: str) -> frozenset[int] | None:
    """The other side of `write`."""
    return frozenset(json.loads(line)["partitions"]) if line.startswith('{"partitions"') else None
