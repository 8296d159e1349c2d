"""Partitions of typed lines: lines without a key go to one partition after the other, lines with a key where the key belongs.

Java's producer stays with one partition until a batch is full, which with typed lines is for ever. Tutorials show lines without
a key spread over all partitions, and so does this. Owns the next partition; the partition of a key is librdkafka's to compute.
Pure: whoever has a producer tells which partitions there are.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.cli.shell.command_line import Failure

BY_KEY: Final = -1  # librdkafka's word for "choose one by the key"
_ROUND_ROBIN: Final = "RoundRobinPartitioner"


class LinePartitions:
    """Chooses the partition of each line."""

    def __init__(self, properties: Mapping[str, str], *, start: int) -> None:
        """`properties` of the producer, in Java's names; `start` is the place in the list of partitions to begin at.

        Raises Failure for a partitioner that is not known.
        """
        chosen = properties.get("partitioner.class", "")
        if chosen and chosen.rpartition(".")[2] != _ROUND_ROBIN:
            raise Failure(
                f"the partitioner {chosen} is not known",
                why="Java classes cannot be loaded here",
                hint=f"leave it out, or take org.apache.kafka.clients.producer.{_ROUND_ROBIN}",
            )
        ignores_keys = properties.get("partitioner.ignore.keys", "").strip().lower() == "true"
        self._with_keys = bool(chosen) or ignores_keys
        self._is_left_to_librdkafka = "partitioner" in properties
        self._partitions: Sequence[int] = ()
        self._next = start

    def set_partitions(self, leaders: Mapping[int, int]) -> None:
        """The topic's partitions and their leaders; those that have none (-1) are passed over while others have one."""
        led = sorted(number for number, leader in leaders.items() if leader >= 0)
        self._partitions = led or sorted(leaders)

    def choose(self, key: bytes | None) -> int:
        """The partition of a line with this key, or BY_KEY."""
        if self._is_left_to_librdkafka or not self._partitions:
            return BY_KEY
        if key is not None and not self._with_keys:
            return BY_KEY
        partition = self._partitions[self._next % len(self._partitions)]
        self._next += 1
        return partition
