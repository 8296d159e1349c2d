"""What goes through the broker: topics' traffic, requests, connections, fetch sessions (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import add, attrgetter, sub
from typing import Final, NamedTuple

from headrace.broker.fetching.fetch_sessions import FetchSessions
from headrace.broker.net.listener import ConnectionCounts
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.pages.exposition import QUANTILES, Sample, family, labels, single, suffixed
from headrace.broker.requests.request_metrics import BUCKET_BOUNDS_S, RequestMetrics, quantile_s
from headrace.broker.telemetry.traffic import UNKNOWN_TOPIC, Traffic
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
_PHASES: Final = (
    ("totaltimems", "Milliseconds from a request's arrival to its answer"),
    (
        "localtimems",
        "Milliseconds that a request was worked on before it was answered or had to wait",
    ),
    (
        "remotetimems",
        "Milliseconds that a request waited: for replicas, records, the controller, other members",
    ),
)


class PhaseTimes(NamedTuple):
    """Calls of one API, in one phase."""

    buckets: Sequence[int]
    no_time: int  # calls that did not have this phase at all
    seconds: float
    calls: int


TimesByPhase = Mapping[str, Mapping[int, PhaseTimes]]


def topic_families(traffic: Traffic) -> Iterator[str]:
    """Each counter over all topics, without a label, and by topic."""
    by_topic = list(traffic.by_topic.items())
    named = [(labels(topic=topic), counts) for topic, counts in by_topic if topic != UNKNOWN_TOPIC]
    for name, attribute, text in _TOPIC_FAMILIES:
        read = attrgetter(attribute)
        samples: list[Sample] = [("", sum(read(counts) for _, counts in by_topic))]
        samples += [(topic_labels, read(counts)) for topic_labels, counts in named]
        yield from family(f"kafka_server_brokertopicmetrics_{name}_total", "counter", text, samples)


def times_by_phase(requests: RequestMetrics) -> TimesByPhase:
    """The counts as of now, also to compare later ones with."""
    total: dict[int, PhaseTimes] = {}
    local: dict[int, PhaseTimes] = {}
    remote: dict[int, PhaseTimes] = {}
    for api_key, times in sorted(requests.by_api.items()):
        buckets, calls = tuple(times.buckets), times.calls
        total[api_key] = local[api_key] = PhaseTimes(buckets, 0, times.seconds, calls)
        waited = requests.waited.get(api_key)
        if waited is None:
            remote[api_key] = PhaseTimes((0,) * len(buckets), calls, 0.0, calls)
            continue
        at_once = map(sub, buckets, waited.total.buckets)
        local_buckets = tuple(map(add, at_once, waited.local.buckets))
        seconds = times.seconds - waited.remote.seconds
        local[api_key] = PhaseTimes(local_buckets, 0, seconds, calls)
        no_time = calls - waited.remote.calls
        remote[api_key] = PhaseTimes(
            tuple(waited.remote.buckets), no_time, waited.remote.seconds, calls
        )
    return {"totaltimems": total, "localtimems": local, "remotetimems": remote}


def request_families(requests: RequestMetrics, earlier: TimesByPhase) -> Iterator[str]:
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
    phases = times_by_phase(requests)
    for phase, text in _PHASES:
        yield from suffixed(
            f"kafka_network_requestmetrics_{phase}",
            "summary",
            f"{text}; quantiles over the last minute or two.",
            _time_summaries(titles, phases[phase], earlier.get(phase, {})),
        )
    yield from suffixed(
        "headrace_request_seconds",
        "histogram",
        "Seconds from a request's arrival to its answer.",
        _time_histograms(requests, titles),
    )


def _time_summaries(
    titles: Mapping[int, str],
    by_api: Mapping[int, PhaseTimes],
    earlier: Mapping[int, PhaseTimes],
) -> Iterator[tuple[str, str, float]]:
    for api_key, times in by_api.items():
        title = titles[api_key]
        recent, no_time = times.buckets, times.no_time
        before = earlier.get(api_key)
        if before is not None:
            recent = list(map(sub, recent, before.buckets))
            no_time -= before.no_time
        if no_time or any(recent):
            for quantile, share in QUANTILES:
                milliseconds = round(quantile_s(recent, share, no_time) * 1_000, 6)
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
    for name, text, count in (
        (
            "requestqueuesize",
            "Requests that wait for an earlier one of their connection.",
            sum(connection.waiting_requests for connection in connections.open),
        ),
        (
            "responsequeuesize",
            "Answers that wait for an earlier one of their connection.",
            sum(connection.waiting_answers for connection in connections.open),
        ),
    ):
        yield from single(f"kafka_network_requestchannel_{name}", "gauge", text, count)
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
