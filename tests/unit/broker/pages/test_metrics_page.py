"""The page of metrics, over the real parts of a broker, read back by a small parser."""

import re
from pathlib import Path

import pytest

from headrace.broker.lifecycle import BrokerState
from headrace.broker.net.connection import Connection
from headrace.broker.pages.metrics_page import MetricsPage, MetricsSources
from headrace.broker.pages.process_stats import ProcessStats, read_process_stats
from headrace.broker.requests.request_metrics import BUCKET_BOUNDS_S, RequestMetrics, quantile_s
from headrace.broker.telemetry.traffic import UNKNOWN_TOPIC
from headrace.ids import TopicPartition
from headrace.log.producers.producer_state import NOT_VERIFIED
from headrace.records.control_batch import TxnMarker
from headrace.wire.api_keys import ApiKey
from tests.support.log_samples import make_producer_batch
from tests.unit.broker.pages.metrics_text import Page
from tests.unit.broker.pages.metrics_world import START_MS, Owner, World, committed

REPOSITORY = Path(__file__).parents[4]
ODD_GROUP = 'a "group" with \\ and\nnewline'


@pytest.fixture
def world() -> World:
    return World()


def test_topics_are_counted_alone_and_together(world: World) -> None:
    counters = world.sources.traffic.of("orders")
    counters.bytes_in, counters.messages_in, counters.failed_produce_requests = 100, 5, 1
    world.sources.traffic.of("payments").bytes_in = 11
    world.sources.traffic.of(UNKNOWN_TOPIC).failed_produce_requests = 4
    page = world.read()
    bytes_in = "kafka_server_brokertopicmetrics_bytesin_total"
    assert page.families[bytes_in].kind == "counter"
    assert page.value(bytes_in) == 111
    assert page.value(bytes_in, topic="orders") == 100
    assert page.value(bytes_in, topic="payments") == 11
    failed = "kafka_server_brokertopicmetrics_failedproducerequests_total"
    assert page.value(failed) == 5
    assert page.labels(failed) == [{}, {"topic": "orders"}, {"topic": "payments"}]


def test_verifications_of_transactions(world: World) -> None:
    world.verifications.failures = 2
    for seconds in (0.0004, 0.0006, 0.0006, 20.0):
        world.verifications.times.add(seconds)
    page = world.read()
    prefix = "kafka_server_addpartitionstotxnmanager"
    assert page.value(f"{prefix}_verificationfailurerate_count") == 2
    times = f"{prefix}_verificationtimems"
    assert page.value(times, "_count") == 4
    assert page.value(times, "_sum") == pytest.approx(20_001.6)
    assert page.value(times, quantile="0.50") == pytest.approx(0.75)
    # Later on, quantiles are over what came since.
    for minute in range(1, 4):
        page = world.read(START_MS + minute * 60_000)
    assert page.value(times, "_count") == 4
    assert not [found for found in page.labels(times) if "quantile" in found]


def test_a_transaction_is_late_five_minutes_after_the_longest_timeout(world: World) -> None:
    late = "kafka_server_replicamanager_partitionswithlatetransactionscount"
    assert world.read().value(late) == 0
    partition = world.partitions.get("orders", 1)
    assert partition is not None
    batch = make_producer_batch(5, 0, 1, transactional=True, timestamp=START_MS)
    partition.append([batch], acks=1, now_ms=START_MS, verified=NOT_VERIFIED)
    longest_ms = world.sources.live_settings.current.transaction_max_timeout_ms
    last_ms = START_MS + longest_ms + 5 * 60_000
    assert world.read(last_ms).value(late) == 0
    assert world.read(last_ms + 1).value(late) == 1
    partition.append_marker(TxnMarker(5, 0, 0, is_commit=False), now_ms=last_ms)
    assert world.read(last_ms + 1).value(late) == 0


def test_request_times(world: World) -> None:
    for seconds in (0.0004, 0.0006, 0.0006, 20.0):
        world.sources.requests.observe(ApiKey.LIST_OFFSETS, seconds)
    page = world.read()
    times = "kafka_network_requestmetrics_totaltimems"
    request = {"request": "ListOffsets"}
    assert page.value("kafka_network_requestmetrics_requests_total", **request) == 4
    assert page.value(times, "_count", **request) == 4
    assert page.value(times, "_sum", **request) == pytest.approx(20_001.6)
    assert page.value(times, quantile="0.50", **request) == pytest.approx(0.75)
    assert page.value(times, quantile="0.999", **request) == 10_000
    histogram = "headrace_request_seconds"
    assert page.value(histogram, "_bucket", le="0.0005", **request) == 1
    assert page.value(histogram, "_bucket", le="0.001", **request) == 3
    assert page.value(histogram, "_bucket", le="10.0", **request) == 3
    assert page.value(histogram, "_bucket", le="+Inf", **request) == 4
    assert page.value(histogram, "_count", **request) == 4


def test_the_time_of_a_request_is_split_at_the_moment_from_which_it_waits(world: World) -> None:
    requests = world.sources.requests
    for _ in range(6):
        requests.observe(ApiKey.PRODUCE, 0.0002)
    for _ in range(4):
        requests.observe_waited(ApiKey.PRODUCE, 0.0002, 0.008)
    requests.observe(ApiKey.METADATA, 0.0002)
    page = world.read()

    def value(phase: str, suffix: str = "", **more: str) -> float:
        name = f"kafka_network_requestmetrics_{phase}timems"
        return page.value(name, suffix, request="Produce", **more)

    for phase in ("total", "local", "remote"):
        assert value(phase, "_count") == 10
    assert value("total", "_sum") == pytest.approx(10 * 0.2 + 4 * 8)
    assert value("local", "_sum") == pytest.approx(10 * 0.2)
    assert value("remote", "_sum") == pytest.approx(4 * 8)
    assert 0.1 < value("local", quantile="0.50") < value("local", quantile="0.999") <= 0.25
    assert value("remote", quantile="0.50") == 0
    assert 5 < value("remote", quantile="0.75") <= value("remote", quantile="0.999") <= 10
    assert value("total", quantile="0.50") < 0.25
    assert value("total", quantile="0.75") > 5
    remote = "kafka_network_requestmetrics_remotetimems"
    assert page.value(remote, request="Metadata", quantile="0.999") == 0


def test_quantiles_forget_what_is_long_ago(world: World) -> None:
    times = "kafka_network_requestmetrics_totaltimems"
    fetch = {"request": "Fetch", "quantile": "0.99"}
    world.sources.requests.observe(ApiKey.FETCH, 7.0)
    assert world.read(START_MS).value(times, **fetch) > 5_000
    assert world.read(START_MS + 60_000).value(times, **fetch) > 5_000
    world.sources.requests.observe(ApiKey.FETCH, 0.002)
    assert world.read(START_MS + 120_000).value(times, **fetch) < 3
    silent = world.read(START_MS + 240_000)
    assert silent.labels(times) == [{"request": "Fetch"}] * 2
    assert silent.value(times, "_count", request="Fetch") == 2


@pytest.mark.parametrize("seconds", [0.0, BUCKET_BOUNDS_S[0], 0.003, BUCKET_BOUNDS_S[-1]])
def test_a_quantile_lies_in_the_bucket_of_the_only_call(seconds: float) -> None:
    requests = RequestMetrics()
    requests.observe(ApiKey.FETCH, seconds)
    buckets = requests.by_api[ApiKey.FETCH].buckets
    upper = next(bound for bound in BUCKET_BOUNDS_S if seconds <= bound)
    lower = max((bound for bound in BUCKET_BOUNDS_S if bound < upper), default=0.0)
    assert lower < quantile_s(buckets, 0.5) <= quantile_s(buckets, 0.999) <= upper


def test_idle_share_of_the_event_loop(world: World) -> None:
    name = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    assert world.read(START_MS).value(name) == 1
    world.loop_cpu_seconds = 5.0
    page = world.read(START_MS + 20_000)
    assert page.value(name) == 0.75
    assert page.value("kafka_network_socketserver_networkprocessoravgidle_percent") == 0.75


def test_connections_memory_and_sessions(world: World) -> None:
    for listener in ("PLAINTEXT", "PLAINTEXT", "INTERNAL"):
        world.sources.connections.open[Connection(Owner(listener))] = None
    world.sources.connections.refused = 2
    world.sources.memory.take(123)
    page = world.read()
    name = "kafka_server_socket_server_metrics_connection_count"
    assert page.value(name, listener="PLAINTEXT") == 2
    assert page.value(name, listener="INTERNAL") == 1
    assert page.value("headrace_connections_refused_total") == 2
    assert page.value("kafka_network_requestchannel_requestqueuesize") == 0
    assert page.value("kafka_network_requestchannel_responsequeuesize") == 0
    assert page.value("kafka_network_socketserver_memorypoolused") == 123
    assert page.value("kafka_server_fetchsessioncache_numincrementalfetchsessions") == 0


def test_replicas_on_this_broker(world: World) -> None:
    page = world.read()
    replicas = "kafka_server_replicamanager"
    assert page.value(f"{replicas}_partitioncount") == 2
    assert page.value(f"{replicas}_leadercount") == 2
    assert page.value(f"{replicas}_offlinereplicacount") == 1
    assert page.value(f"{replicas}_underreplicatedpartitions") == 1
    assert page.value(f"{replicas}_underminisrpartitioncount") == 1
    assert page.value(f"{replicas}_atminisrpartitioncount") == 1
    assert page.value(f"{replicas}_reassigningpartitions") == 0
    assert page.value("kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 17
    first, second = {"topic": "orders", "partition": "0"}, {"topic": "orders", "partition": "1"}
    log = world.partitions.get("orders", 0)
    assert log is not None
    assert page.value("kafka_log_log_size", **first) == log.log.size > 0
    assert page.value("kafka_log_log_logendoffset", **first) == 5
    assert page.value("kafka_log_log_logstartoffset", **first) == 0
    assert page.value("kafka_log_log_numlogsegments", **second) == 1
    # One replica cannot be under a minimum of two; of two, one is.
    assert page.value("kafka_cluster_partition_underminisr", **first) == 0
    assert page.value("kafka_cluster_partition_atminisr", **first) == 1
    assert page.value("kafka_cluster_partition_underminisr", **second) == 1
    assert page.value("kafka_cluster_partition_replicascount", **second) == 2
    assert page.value("kafka_cluster_partition_laststableoffsetlag", **first) == 0


def test_a_replica_that_does_not_lead_shows_its_log_only(world: World) -> None:
    replica = world.partitions.get("orders", 0)
    assert replica is not None
    replica.resign()
    page = world.read()
    assert page.value("kafka_server_replicamanager_leadercount") == 1
    assert len(page.labels("kafka_log_log_size")) == 2
    for name in ("kafka_cluster_partition_replicascount", "kafka_topic_partition_current_offset"):
        assert page.labels(name) == [{"topic": "orders", "partition": "1"}]


def test_the_controller_speaks_for_the_cluster(world: World) -> None:
    page = world.read()
    controller = "kafka_controller_kafkacontroller"
    assert page.value(f"{controller}_activecontrollercount") == 1
    assert page.value(f"{controller}_activebrokercount") == 2
    assert page.value(f"{controller}_globaltopiccount") == 1
    assert page.value(f"{controller}_globalpartitioncount") == 3
    assert page.value(f"{controller}_offlinepartitionscount") == 1
    assert page.value(f"{controller}_preferredreplicaimbalancecount") == 2
    assert page.value("kafka_brokers") == 2
    assert page.value("kafka_broker_info", id="2", address="two:9092") == 1
    assert page.value("kafka_topic_partitions", topic="orders") == 3
    partition = "kafka_topic_partition"
    second, third = {"topic": "orders", "partition": "1"}, {"topic": "orders", "partition": "2"}
    assert page.value(f"{partition}_leader", **third) == -1
    assert page.value(f"{partition}_leader", **second) == 1
    assert page.value(f"{partition}_leader_is_preferred", **second) == 0
    assert page.value(f"{partition}_in_sync_replica", **second) == 1
    assert page.value(f"{partition}_replicas", **second) == 2
    assert page.value(f"{partition}_under_replicated_partition", **second) == 1
    assert page.value(f"{partition}_current_offset", topic="orders", partition="0") == 5
    assert page.value(f"{partition}_oldest_offset", topic="orders", partition="0") == 0


def test_other_brokers_leave_the_cluster_to_the_controller() -> None:
    page = World(controller_id=2).read()
    for name in ("activecontrollercount", "globaltopiccount", "offlinepartitionscount"):
        assert page.value(f"kafka_controller_kafkacontroller_{name}") == 0
    assert "kafka_brokers" not in page.families
    assert [labels["partition"] for labels in page.labels("kafka_topic_partition_leader")] == [
        "0",
        "1",
    ]


def test_log_directories(world: World) -> None:
    world.log_dirs.offline['/lost "disk"'] = "it is gone"
    page = world.read()
    assert page.value("kafka_log_logmanager_offlinelogdirectorycount") == 1
    offline = "kafka_log_logmanager_logdirectoryoffline"
    assert page.value(offline, logDirectory="/data") == 0
    assert page.value(offline, logDirectory='/lost "disk"') == 1


def test_groups_and_their_lag(world: World) -> None:
    world.progress = [
        (ODD_GROUP, 3, {"orders": {0: committed(2), 1: committed(9)}, "far": {4: committed(8)}}),
        ("idle", 0, {}),
    ]
    page = world.read()
    prefix = "kafka_coordinator_group_groupmetadatamanager_num"
    assert page.value(f"{prefix}groups") == 3
    assert page.value(f"{prefix}groupsstable") == 2
    assert page.value(f"{prefix}groupsempty") == 1
    assert page.value(f"{prefix}groupspreparingrebalance") == 0
    assert page.value(f"{prefix}groupscompletingrebalance") == 0
    assert page.value(f"{prefix}groupsdead") == 0
    assert page.value(f"{prefix}offsets") == 3
    group = "kafka_consumergroup"
    assert page.value(f"{group}_members", consumergroup=ODD_GROUP) == 3
    assert page.value(f"{group}_members", consumergroup="idle") == 0
    odd = {"consumergroup": ODD_GROUP}
    assert page.value(f"{group}_current_offset", topic="orders", partition="0", **odd) == 2
    assert page.value(f"{group}_current_offset_sum", topic="orders", **odd) == 11
    assert page.value(f"{group}_current_offset", topic="far", partition="4", **odd) == 8
    assert page.value(f"{group}_lag", topic="orders", partition="0", **odd) == 3
    assert page.value(f"{group}_lag", topic="orders", partition="1", **odd) == 0
    assert page.value(f"{group}_lag_sum", topic="orders", **odd) == 3
    assert {labels["topic"] for labels in page.labels(f"{group}_lag")} == {"orders"}


def test_the_broker_and_its_process(world: World) -> None:
    world.sources.lifecycle.state = BrokerState.RUNNING
    page = world.read()
    assert page.value("kafka_server_kafkaserver_brokerstate") == 3
    [info] = page.labels("headrace_info")
    assert (info["broker_id"], info["cluster_id"]) == ("1", "cluster")
    assert page.value("process_cpu_seconds_total") == 12.5
    assert page.value("process_open_fds") == 17
    assert "process_resident_memory_bytes" not in page.families, "the system did not tell"
    assert page.value("python_gc_collections_total", generation="0") == 3
    assert page.value("python_gc_objects_collected_total", generation="1") == 9


def test_a_large_page_comes_in_small_pieces_and_the_broker_goes_on_between_them(
    world: World,
) -> None:
    world.progress = [
        (f"group-{n}", 1, {"orders": dict.fromkeys(range(100), committed(1))}) for n in range(60)
    ]
    pieces = world.page.pieces(START_MS)
    text = next(pieces)
    world.sources.traffic.of("new")
    world.host("orders", 2, records=1)
    count = 1
    for piece in pieces:
        count += 1
        assert piece.count("\n") < 700
        text += piece
        world.sources.requests.observe(ApiKey(count % 20 + 50), 0.1)
        world.partitions.remove(TopicPartition("orders", count))
        world.progress[-1][2]["orders"].pop(count, None)  # type: ignore[attr-defined] # the real ones change
    assert count > 10
    Page(text)


def test_this_process_as_the_system_sees_it() -> None:
    stats = read_process_stats()
    assert stats.resident_bytes is not None
    assert stats.virtual_bytes is not None
    assert 1_000_000 < stats.resident_bytes <= stats.virtual_bytes
    assert stats.open_fds is not None
    assert stats.max_fds is not None
    assert 3 <= stats.open_fds <= stats.max_fds
    with Path("/dev/null").open():
        assert read_process_stats().open_fds == stats.open_fds + 1
    assert stats.threads is not None
    assert stats.threads >= 1
    assert stats.start_time_seconds is not None
    assert stats.start_time_seconds > 1_500_000_000
    assert read_process_stats().start_time_seconds == stats.start_time_seconds
    assert 0 < stats.loop_cpu_seconds <= stats.cpu_seconds


def test_the_documentation_lists_every_family_and_no_other(world: World) -> None:
    text = (REPOSITORY / "docs/metrics.md").read_text()
    of_brokers, _, of_services = text.partition("## Schema registry and REST proxy")
    assert of_services
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (?:`.+` )?\| (.+) \|$", of_brokers, re.MULTILINE)
    page = "".join(MetricsPage(_with_full_process(world), START_MS).pieces(START_MS))
    made = [(name, family.kind, family.text) for name, family in Page(page).families.items()]
    assert sorted(rows) == sorted(made)


def _with_full_process(world: World) -> MetricsSources:
    stats = ProcessStats(
        cpu_seconds=1.0,
        loop_cpu_seconds=1.0,
        gc_generations=(),
        start_time_seconds=1.0,
        threads=1,
        open_fds=1,
        max_fds=1,
        resident_bytes=1,
        virtual_bytes=1,
        disk_read_bytes=1,
        disk_write_bytes=1,
    )
    return MetricsSources(
        **{
            name: getattr(world.sources, name)
            for name in MetricsSources.__slots__
            if name != "process"
        },
        process=lambda: stats,
    )
