"""Every API of this broker: the one list. What is not here is not offered, and ApiVersions is computed from it.

Each module has `handle`; its dependencies are keyword-only parameters, bound here by their names. A module may bring its
own `decode`, declare a `fast_path`, and narrow the versions that its messages know. Internal APIs are offered on the listener for
other brokers only.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, Final

from headrace.broker.apis import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from headrace.broker.internal_apis import ask_controller, pull_changes
from headrace.broker.net.frame_buffer import Frame
from headrace.broker.requests.dispatch import BoundApi
from headrace.wire.api_keys import ApiKey, request_class
from headrace.wire.codec import message_decoder
from headrace.wire.headers import response_tags_from

APIS: Final[Mapping[ApiKey, ModuleType]] = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.HEARTBEAT: heartbeat,
    ApiKey.LEAVE_GROUP: leave_group,
    ApiKey.SYNC_GROUP: sync_group,
    ApiKey.DESCRIBE_GROUPS: describe_groups,
    ApiKey.LIST_GROUPS: list_groups,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets_to_txn,
    ApiKey.END_TXN: end_txn,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: describe_acls,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: delete_acls,
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.DELETE_GROUPS: delete_groups,
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments,
    ApiKey.OFFSET_DELETE: offset_delete,
    ApiKey.UPDATE_FEATURES: update_features,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions,
    ApiKey.LIST_TRANSACTIONS: list_transactions,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
}

INTERNAL_APIS: Final[Mapping[ApiKey, ModuleType]] = {
    ApiKey.PULL_CHANGES: pull_changes,
    ApiKey.ASK_CONTROLLER: ask_controller,
}


def versions(key: ApiKey) -> tuple[int, int]:
    """First and last version that is handled."""
    first, last = request_class(key).VERSIONS
    module = APIS.get(key) or INTERNAL_APIS[key]
    return getattr(module, "FIRST_VERSION", first), getattr(module, "LAST_VERSION", last)


def advertised() -> tuple[tuple[int, int, int], ...]:
    """(key, first, last) of every API as ApiVersions tells it."""
    return tuple(
        (key, getattr(module, "ADVERTISED_FROM", versions(key)[0]), versions(key)[1])
        for key, module in APIS.items()
    )


def bind(parts: Mapping[str, object]) -> dict[int, BoundApi]:
    """The APIs with their handlers' dependencies taken from `parts`."""
    modules = {**APIS, **INTERNAL_APIS}
    return {key: bind_api(key, module, parts) for key, module in modules.items()}


def bind_api(key: ApiKey, module: ModuleType, parts: Mapping[str, object]) -> BoundApi:
    first, last = versions(key)
    own_decode: Callable[[int, Frame, int], Any] | None = getattr(module, "decode", None)
    fast_path = getattr(module, "fast_path", None)
    return BoundApi(
        key=key,
        is_internal=key in INTERNAL_APIS,
        tags_from=response_tags_from(key),
        first_version=first,
        last_version=last,
        decode=own_decode or message_decoder(request_class(key)),
        handle=partial(module.handle, **_needs(module.handle, parts)),
        fast_path=None if fast_path is None else fast_path(**_needs(fast_path, parts)),
    )


def _needs(function: Callable[..., object], parts: Mapping[str, object]) -> dict[str, object]:
    """The parts that a function names as keyword-only parameters."""
    return {
        name: parts[name]
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY
    }
