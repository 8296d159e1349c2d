"""What goes through the broker: topics' traffic, requests, connections, fetch sessions (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, sub
from typing import Final

from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.listener import ConnectionCounts
from headrace.broker.memory_budget import MemoryBudget
from headrace.broker.metrics.exposition import Sample, family, labels, single, suffixed
from headrace.broker.request_metrics import BUCKET_BOUNDS_S, RequestMetrics, quantile_s
from headrace.broker.traffic import UNKNOWN_TOPIC, Traffic
from headrace.wire.api_keys import ApiKey
from headrace.wire.error_code import ErrorCode

_TOPIC_FAMILIES: Final = (
    ("messagesin", "messages_in", "Records taken from producers."),
    ("bytesin", "bytes_in", "Bytes of record batches taken from producers."),
    ("bytesout", "bytes_out", "Bytes of record batches given to consumers."),
    ("totalproducerequests", "produce_requests", "Produce requests, counted once per topic."),
    ("totalfetchrequests", "fetch_requests", "Fetch requests, counted once per topic."),
    (
        "failedproducerequests",
        "failed_produce_requests",
        "Produce requests answered with an error.",
    ),
    ("failedfetchrequests", "failed_fetch_requests", "Fetch requests answered with an error."),
)
# The label as the public rule for Kafka's percentiles writes it, and the share of the calls.
_QUANTILES: Final = (
    ("0.50", 0.5),
    ("0.75", 0.75),
    ("0.95", 0.95),
    ("0.98", 0.98),
    ("0.99", 0.99),
    ("0.999", 0.999),
)

BucketsByApi = Mapping[int, Sequence[int]]


def topic_families(traffic: Traffic) -> Iterator[str]:
    """Each counter over all topics, without a label, and by topic."""
    by_topic = list(traffic.by_topic.items())
    named = [(labels(topic=topic), counts) for topic, counts in by_topic if topic != UNKNOWN_TOPIC]
    for name, attribute, text in _TOPIC_FAMILIES:
        read = attrgetter(attribute)
        samples: list[Sample] = [("", sum(read(counts) for _, counts in by_topic))]
        samples += [(topic_labels, read(counts)) for topic_labels, counts in named]
        yield from family(f"kafka_server_brokertopicmetrics_{name}_total", "counter", text, samples)


def buckets_by_api(requests: RequestMetrics) -> BucketsByApi:
    """The counts as of now, to compare later ones with."""
    return {api_key: tuple(times.buckets) for api_key, times in requests.by_api.items()}


def request_families(requests: RequestMetrics, earlier: BucketsByApi) -> Iterator[str]:
    """Calls by API. Quantiles are over the calls since `earlier`, everything else since the start."""
    titles = {api_key: ApiKey(api_key).title for api_key in sorted(requests.by_api)}
    yield from family(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        "Requests answered.",
        [(labels(request=title), requests.by_api[key].calls) for key, title in titles.items()],
    )
    yield from family(
        "kafka_network_requestmetrics_errors_total",
        "counter",
        "Error codes in the answers, NONE among them, one for each item that was asked for.",
        [
            (labels(request=ApiKey(key).title, error=ErrorCode.of(code).name), count)
            for (key, code), count in sorted(requests.errors.items())
        ],
    )
    yield from suffixed(
        "kafka_network_requestmetrics_totaltimems",
        "summary",
        "Milliseconds from a request's arrival to its answer; quantiles over the last minute or two.",
        _time_summaries(requests, titles, earlier),
    )
    yield from suffixed(
        "headrace_request_seconds",
        "histogram",
        "Seconds from a request's arrival to its answer.",
        _time_histograms(requests, titles),
    )


def _time_summaries(
    requests: RequestMetrics, titles: Mapping[int, str], earlier: BucketsByApi
) -> Iterator[tuple[str, str, float]]:
    for api_key, title in titles.items():
        times = requests.by_api[api_key]
        before = earlier.get(api_key)
        recent = times.buckets if before is None else list(map(sub, times.buckets, before))
        if any(recent):
            for quantile, share in _QUANTILES:
                milliseconds = round(quantile_s(recent, share) * 1_000, 6)
                yield "", labels(request=title, quantile=quantile), milliseconds
        yield "_sum", labels(request=title), round(times.seconds * 1_000, 6)
        yield "_count", labels(request=title), times.calls


def _time_histograms(
    requests: RequestMetrics, titles: Mapping[int, str]
) -> Iterator[tuple[str, str, float]]:
    for api_key, title in titles.items():
        times = requests.by_api[api_key]
        up_to = 0
        for count, bound in zip(times.buckets, (*BUCKET_BOUNDS_S, "+Inf"), strict=True):
            up_to += count
            yield "_bucket", labels(request=title, le=str(bound)), up_to
        yield "_sum", labels(request=title), round(times.seconds, 9)
        yield "_count", labels(request=title), up_to


def connection_families(connections: ConnectionCounts, memory: MemoryBudget) -> Iterator[str]:
    """Sockets, and the memory of the requests that came through them."""
    by_listener = Counter(connection.listener_name for connection in connections.open)
    yield from family(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        "Open connections of clients.",
        [(labels(listener=name), count) for name, count in sorted(by_listener.items())],
    )
    yield from single(
        "headrace_connections_refused_total",
        "counter",
        "Connections refused because a limit was reached.",
        connections.refused,
    )
    yield from single(
        "kafka_network_socketserver_memorypoolused",
        "gauge",
        "Bytes of requests that are in memory.",
        memory.used_bytes,
    )


def fetch_session_families(sessions: FetchSessions) -> Iterator[str]:
    """Incremental fetch sessions."""
    yield from single(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "gauge",
        "Incremental fetch sessions.",
        len(sessions),
    )
    yield from single(
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
        "counter",
        "Incremental fetch sessions that had to make room for others.",
        sessions.evictions,
    )
