"""The members of a consumer group in their terminals, and what `kafka-consumer-groups.sh` says of the group."""

from collections import Counter

from tests.support.terminals import Terminal, Terminals, wait_until


class GroupReading:
    """The consumers of a group and what they have printed, all together."""

    def __init__(self, terminals: Terminals, group: str, servers: str) -> None:
        self._terminals = terminals
        self._describe = (
            f"bin/kafka-consumer-groups.sh --bootstrap-server {servers} --describe --group {group}"
        )
        self._group = group
        self.consumers: list[Terminal] = []

    def start(self, line: str, count: int) -> None:
        """Start so many members, and wait until each has a share of the partitions."""
        self.consumers += [self._terminals.start(line) for _ in range(count)]
        wait_until(lambda: len(self.shares()) == count, f"{count} members have partitions")

    def rows(self) -> list[list[str]]:
        """What is described, one row a partition."""
        described = self._terminals.run(self._describe).splitlines()
        return [row for row in map(str.split, described) if row and row[0] == self._group]

    def shares(self) -> list[int]:
        """How many partitions each member has."""
        owners = Counter(row[6] for row in self.rows() if row[6] != "-")
        return sorted(owners.values())

    def wait_for_offsets(self, partitions: int) -> None:
        """Wait until every partition has a committed offset, also where nothing was read."""
        wait_until(
            lambda: [row[3].isdecimal() for row in self.rows()] == [True] * partitions,
            f"offsets of {partitions} partitions are committed",
        )

    @property
    def counts(self) -> Counter[str]:
        """How often each message was printed."""
        return Counter(line for consumer in self.consumers for line in consumer.lines)

    def wait_for(self, messages: list[str]) -> None:
        """Wait until each of these was printed at least once."""
        wait_until(
            lambda: set(messages) <= set(self.counts), f"{len(messages)} messages, {messages[-1]}"
        )

    def wait_for_once(self, messages: list[str]) -> None:
        """Wait until each of these was printed, and see that none was printed twice."""
        self.wait_for(messages)
        counts = self.counts
        assert {each: counts[each] for each in messages} == dict.fromkeys(messages, 1)
