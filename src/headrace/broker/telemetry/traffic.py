"""What flows through the broker, by topic: plain integers on the hot path, read when somebody asks."""

from typing import Final

UNKNOWN_TOPIC: Final = (
    ""  # for topics that are gone or never were: names of the latter are anybody's
)


class TopicTraffic:
    """One topic's counters since the start."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0


class Traffic:
    """Counters by topic name."""

    __slots__ = ("by_topic",)

    def __init__(self) -> None:
        self.by_topic: dict[str, TopicTraffic] = {}

    def of(self, topic: str) -> TopicTraffic:
        """A topic's counters."""
        counters = self.by_topic.get(topic)
        if counters is None:
            counters = self.by_topic[topic] = TopicTraffic()
        return counters

    def forget(self, topic: str) -> None:
        """The topic is gone; what flowed through it still counts in the totals."""
        gone = self.by_topic.pop(topic, None)
        if gone is not None:
            rest = self.of(UNKNOWN_TOPIC)
            for name in TopicTraffic.__slots__:
                setattr(rest, name, getattr(rest, name) + getattr(gone, name))
