"""The settings in force as typed attributes: what the broker goes by.

Attribute names are Kafka's with underscores, so that a search for either finds the other. Immutable;
a dynamic change makes a new object. Only settings that some part of Headrace reads stand here, and
exactly those are marked as honoured in the tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

from headrace.errors import SettingError
from headrace.ids import BrokerId
from headrace.settings import cross_checks, definitions, unsupported
from headrace.settings.definitions.value_type import Value
from headrace.settings.listener import (
    PROTOCOLS,
    Listener,
    parse_connection_limits,
    parse_listeners,
    parse_protocol_map,
    without,
)
from headrace.settings.resolution import (
    PLUGIN_PREFIXES,
    ConfigLayers,
    broker_setting,
    with_both_ids,
)
from headrace.settings.topic_config import TopicConfig
from headrace.settings.values import unknown_name

_SMALLEST_REQUEST_MEMORY = 256 * 1024 * 1024


@dataclass(frozen=True, init=False, eq=False, repr=False)
class BrokerSettings:
    """Made from what a file, the command line and the cluster's dynamic configs set."""

    layers: ConfigLayers
    warnings: tuple[str, ...]
    topic_defaults: TopicConfig

    node_id: BrokerId
    broker_rack: str | None
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    controlled_shutdown_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    zookeeper_connect: str | None
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int

    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...] | None
    inter_broker_listener: Listener
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    connections_max_idle_ms: int
    max_connections: int
    max_connections_per_ip: int
    max_connection_creation_rate: int
    max_connections_per_ip_overrides: Mapping[str, int]
    queued_max_request_bytes: int
    request_timeout_ms: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int

    log_dirs: tuple[str, ...]
    log_retention_check_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    num_recovery_threads_per_data_dir: int
    log_cleaner_enable: bool
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_max_bytes_per_second: float

    replica_lag_time_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_wait_max_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_socket_timeout_ms: int
    replica_selector_class: str | None
    leader_replication_throttled_rate: int
    follower_replication_throttled_rate: int
    replica_alter_log_dirs_io_max_bytes_per_second: int

    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_compression_codec: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    producer_id_expiration_ms: int
    add_partitions_to_txn_retry_backoff_ms: int
    add_partitions_to_txn_retry_backoff_max_ms: int
    transaction_partition_verification_enable: bool
    producer_id_expiration_check_interval_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transactional_id_expiration_ms: int

    headrace_busy_poll_us: int
    headrace_failover_on_refused_connection: bool
    headrace_http_listeners: tuple[Listener, ...]
    headrace_log_format: str
    headrace_log_level: str

    def __init__(self, layers: ConfigLayers) -> None:
        values = layers.values
        for refusal in cross_checks.refusals(values):
            raise SettingError(refusal)
        listeners = _listeners(values, layers)
        refusals = unsupported.refusals(layers, listeners)
        if refusals:
            raise SettingError("\n".join(refusals))
        connection_timeout_ms = values["zookeeper.connection.timeout.ms"]
        derived: dict[str, object] = {
            "layers": layers,
            "warnings": tuple(_warnings(layers.static)),
            "topic_defaults": TopicConfig({}, values),
            "listeners": listeners,
            "advertised_listeners": _advertised_listeners(values, listeners),
            "inter_broker_listener": _inter_broker_listener(values, listeners),
            "max_connections_per_ip_overrides": parse_connection_limits(
                _text(values, "max.connections.per.ip.overrides")
            ),
            "headrace_http_listeners": _http_listeners(values),
            "log_dirs": values["log.dirs"] or values["log.dir"],
            "zookeeper_connection_timeout_ms": connection_timeout_ms
            or values["zookeeper.session.timeout.ms"],
        }
        for field in fields(self):
            name = field.name
            value = derived[name] if name in derived else values[name.replace("_", ".")]
            object.__setattr__(self, name, value)

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, default_log_dir: str = "headrace-data"
    ) -> Self:
        """Settings at the start. Raises `SettingError`: one line per malformed value, or per setting without support."""
        static = with_both_ids(properties)
        return cls(ConfigLayers(static=static, default_log_dir=default_log_dir))

    def with_dynamic(
        self, *, default: Mapping[str, str], broker: Mapping[str, str]
    ) -> "BrokerSettings":
        """The same file under other dynamic configs: the cluster's defaults and this broker's own."""
        layers = replace(self.layers, dynamic_default=default, dynamic_broker=broker)
        return BrokerSettings(layers)

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The configuration of a topic that sets `overrides` itself."""
        return TopicConfig(overrides, self.layers.values) if overrides else self.topic_defaults

    def is_set(self, name: str) -> bool:
        """Whether anybody set this, as against a default in force."""
        return any(name in texts for _, texts in self.layers.set_texts())

    @property
    def request_memory_bytes(self) -> int:
        """Memory for requests in flight. Kafka's default sets no limit; a broker needs one."""
        if self.queued_max_request_bytes > 0:
            return self.queued_max_request_bytes
        return max(_SMALLEST_REQUEST_MEMORY, 2 * self.socket_request_max_bytes)


def _warnings(static: Mapping[str, str]) -> list[str]:
    known = (*definitions.BROKER, *definitions.UNLISTED)
    return [
        unknown_name(name, known)
        for name in static
        if broker_setting(name) is None and not name.startswith(PLUGIN_PREFIXES)
    ]


def _listeners(values: Mapping[str, Value], layers: ConfigLayers) -> tuple[Listener, ...]:
    """Controllers' listeners are left out: a KRaft file must work, and Headrace has no such listener."""
    entries = _entries(values, "listeners")
    if "listeners" not in layers.static and {"port", "host.name"} & set(layers.static):
        entries = (f"PLAINTEXT://{values['host.name'] or '127.0.0.1'}:{values['port']}",)
    controller_names = _entries(values, "controller.listener.names")
    kept = without(controller_names, entries)
    protocols = parse_protocol_map(_text(values, "listener.security.protocol.map"))
    listeners = parse_listeners("listeners", kept, protocols)
    if not listeners:
        raise SettingError("listeners: none is left for clients")
    return listeners


def _advertised_listeners(
    values: Mapping[str, Value], listeners: tuple[Listener, ...]
) -> tuple[Listener, ...] | None:
    first = listeners[0]
    if values["advertised.listeners"] is not None:
        controller_names = _entries(values, "controller.listener.names")
        entries = without(controller_names, _entries(values, "advertised.listeners"))
    elif values["advertised.host.name"] is not None:
        port = values["advertised.port"] or first.port
        entries = (f"{first.name}://{values['advertised.host.name']}:{port}",)
    else:
        return None
    protocols = {listener.name: listener.protocol for listener in listeners}
    for entry in entries:
        name = entry.partition("://")[0].upper()
        if name not in protocols:
            raise SettingError(f"advertised.listeners: {entry}: listeners has no {name}")
    advertised = parse_listeners("advertised.listeners", entries, protocols)
    for listener in advertised:
        if listener.host in {"", "0.0.0.0", "::"}:  # noqa: S104 (refused, not bound)
            raise SettingError(f"advertised.listeners: {listener}: a client cannot dial that host")
    return advertised


def _inter_broker_listener(
    values: Mapping[str, Value], listeners: tuple[Listener, ...]
) -> Listener:
    name = values["inter.broker.listener.name"]
    if name is not None:
        for listener in listeners:
            if listener.name == str(name).upper():
                return listener
        raise SettingError(f"inter.broker.listener.name: listeners has no {name}")
    protocol = values["security.inter.broker.protocol"]
    assert protocol in PROTOCOLS
    same_protocol = (listener for listener in listeners if listener.protocol == protocol)
    return next(same_protocol, listeners[0])


def _http_listeners(values: Mapping[str, Value]) -> tuple[Listener, ...]:
    name = "headrace.http.listeners"
    return tuple(
        listener
        for entry in _entries(values, name)
        for listener in parse_listeners(name, (entry,), {"HTTP": "HTTP"})
    )


def _text(values: Mapping[str, Value], name: str) -> str:
    value = values[name]
    assert isinstance(value, str), name
    return value


def _entries(values: Mapping[str, Value], name: str) -> tuple[str, ...]:
    value = values[name]
    assert isinstance(value, tuple), name
    return value
