"""Group members as processes that a test starts, asks to leave, or kills, watching what they are assigned."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.conformance.clients.client import Client
from tests.support.tools import REPOSITORY

PATIENCE_S = 90.0


class Member:
    """One process in a group. A thread reads its lines; `partitions` is what it had at the last of them."""

    def __init__(self, client: Client, bootstrap: str, topic: str, group: str) -> None:
        self.partitions: frozenset[int] = frozenset()
        self.output = ""
        self._client, self._topic = client, topic
        self._process = subprocess.Popen(
            client.member_command(bootstrap, topic, group),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=REPOSITORY,
            env=os.environ,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.output += line
                partitions = self._client.read_assignment(line, self._topic)
                if partitions is not None:
                    self.partitions = partitions

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def leave(self) -> None:
        """Go politely: the group hears of it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Die without a word: the group must notice."""
        self._end(signal.SIGKILL)

    def _end(self, with_signal: signal.Signals) -> None:
        self._process.send_signal(with_signal)
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()


@contextmanager
def members(bootstrap: str, topic: str, group: str) -> Iterator[Callable[[Client], Member]]:
    """A function that adds a member to the group; all that are left at the end are killed."""
    started: list[Member] = []

    def start(client: Client) -> Member:
        started.append(Member(client, bootstrap, topic, group))
        return started[-1]

    try:
        yield start
    finally:
        for member in started:
            member.kill()


def wait_until_shared(partitions: int, among: list[Member]) -> None:
    """Wait until every partition belongs to exactly one of these members, and each has its share."""
    everything, least = sorted(range(partitions)), partitions // len(among)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        held = [member.partitions for member in among]
        if (
            sorted(number for share in held for number in share) == everything
            and min(map(len, held)) >= least
        ):
            return
        if time.monotonic() > deadline or not all(member.running for member in among):
            told = "\n".join(
                f"{sorted(member.partitions)}\n{member.output[-1500:]}" for member in among
            )
            raise AssertionError(
                f"the {partitions} partitions were not shared out in time:\n{told}"
            )
        time.sleep(0.05)
