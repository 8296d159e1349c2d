"""Latencies of many records in the words of Kafka's producer-perf-test. Pure: times come from the caller."""

from dataclasses import dataclass, field

MB = 1024 * 1024
SAMPLES = 500_000
PERCENTILES = (0.5, 0.95, 0.99, 0.999)


@dataclass(slots=True)
class Window:
    """What was acknowledged since the last report."""

    started_s: float
    count: int = 0
    bytes: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0

    def line(self, now_s: float) -> str:
        elapsed_s = max(now_s - self.started_s, 0.001)
        return (
            f"{self.count} records sent, {self.count / elapsed_s:.1f} records/sec"
            f" ({self.bytes / elapsed_s / MB:.2f} MB/sec),"
            f" {self.total_ms / max(self.count, 1):.1f} ms avg latency,"
            f" {self.max_ms:.1f} ms max latency."
        )


@dataclass(slots=True)
class LatencyStats:
    """Everything acknowledged since the start, with a sample of the latencies."""

    started_s: float
    expected: int
    title: str = ""  # " steady state" behind the count, once warm
    count: int = 0
    bytes: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0
    window: Window = field(init=False)
    _latencies: list[float] = field(default_factory=list)
    _every: int = field(init=False)

    def __post_init__(self) -> None:
        self.window = Window(self.started_s)
        # A sample of at most half a million is enough for percentiles, and fits into memory.
        self._every = max(1, -(-self.expected // SAMPLES))

    def record(self, latency_ms: float, size_bytes: int) -> None:
        if self.count % self._every == 0:
            self._latencies.append(latency_ms)
        self.count += 1
        self.bytes += size_bytes
        self.total_ms += latency_ms
        self.max_ms = max(self.max_ms, latency_ms)
        window = self.window
        window.count += 1
        window.bytes += size_bytes
        window.total_ms += latency_ms
        window.max_ms = max(window.max_ms, latency_ms)

    def report(self, now_s: float) -> str:
        """The line of the window that ends now; a new one begins."""
        line = self.window.line(now_s)
        self.window = Window(now_s)
        return line

    def total(self, now_s: float) -> str:
        elapsed_s = max(now_s - self.started_s, 0.001)
        percentiles = ", ".join(
            f"{value:.0f} ms {name}"
            for value, name in zip(
                self.percentiles(), ("50th", "95th", "99th", "99.9th"), strict=True
            )
        )
        return (
            f"{self.count}{self.title} records sent, {self.count / elapsed_s:f} records/sec"
            f" ({self.bytes / elapsed_s / MB:.2f} MB/sec),"
            f" {self.total_ms / max(self.count, 1):.2f} ms avg latency,"
            f" {self.max_ms:.2f} ms max latency, {percentiles}."
        )

    def percentiles(self) -> list[float]:
        ordered = sorted(self._latencies)
        if not ordered:
            return [0.0] * len(PERCENTILES)
        return [ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in PERCENTILES]
