"""The clean-shutdown marker of a log directory: which run of a broker stopped cleanly, and which logs it had not opened.

`log_dirs` writes the marker behind all else of a stop, and removes it at the start.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from headrace.ids import TopicPartition

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"


class CleanRun(NamedTuple):
    """A broker's incarnation that stopped cleanly, and the first of the unbroken row of such that it ends."""

    broker_epoch: int
    since_epoch: int
    cluster_id: str = ""  # epochs of different clusters say nothing about each other

    def encode(self, unopened: Iterable[TopicPartition] = ()) -> bytes:
        """The marker's content. It does not speak of the logs in `unopened`, which were not closed."""
        epoch, since, cluster_id = self
        cluster = f',"clusterId":"{cluster_id}"' if cluster_id else ""
        names = ",".join(f'"{topic_partition}"' for topic_partition in unopened)
        but = f',"unopened":[{names}]' if names else ""
        fields = f'"version":0,"brokerEpoch":{epoch},"cleanSinceEpoch":{since}{cluster}{but}'
        return f"{{{fields}}}".encode()

    @classmethod
    def decode(cls, marker: bytes | None) -> "CleanRun":
        """What a marker says; nothing of what it does not say."""
        numbers = dict(re.findall(rb'"(\w+)"\s*:\s*(-?\d+)', marker or b""))
        epoch = int(numbers.get(b"brokerEpoch", -1))
        cluster = re.search(rb'"clusterId"\s*:\s*"([\w-]*)"', marker or b"")
        cluster_id = "" if cluster is None else cluster[1].decode()
        return cls(epoch, int(numbers.get(b"cleanSinceEpoch", epoch)), cluster_id)


UNKNOWN_RUN: Final = CleanRun(-1, -1)


def unopened_in(marker: bytes | None) -> set[str]:
    """Names of the logs that were not closed when the marker was written."""
    names = re.search(rb'"unopened"\s*:\s*\[([^\]]*)\]', marker or b"")
    return set() if names is None else set(re.findall(r'"([^"]+)"', names[1].decode()))
