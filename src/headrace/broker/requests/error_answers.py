"""The answer to a request that failed as a whole: one error at its top level and in each of its items (pure).

Kafka's `getErrorResponse`. Owns where each API's answer has room for errors. Items are made from those of the request: fields
of the same name are taken over, so that a client finds its topics, partitions and groups again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from headrace.broker.requests.answer_errors import ERROR_FIELDS
from headrace.errors import MalformedMessage
from headrace.wire.api_keys import ApiKey, response_class
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import Response


class _Items(NamedTuple):
    """An array of a request, and the array of its answer with an element for each of its elements."""

    asked: str
    answered: str
    key: str = ""  # the answer's field for an element that is a plain value
    renamed: Mapping[str, str] = {}  # the answer's field → the request's
    values: Mapping[str, Any] = {}  # of other fields, where the message's default is not Kafka's
    within: "_Items | None" = None
    versions: tuple[int, int] = (0, 99)


_ITEMS: Final[Mapping[ApiKey, tuple[_Items, ...]]] = {
    ApiKey.PRODUCE: (
        _Items(
            "topic_data",
            "responses",
            within=_Items("partition_data", "partition_responses", values={"base_offset": -1}),
        ),
    ),
    ApiKey.FETCH: (
        _Items(
            "topics",
            "responses",
            within=_Items(
                "partitions",
                "partitions",
                renamed={"partition_index": "partition"},
                values={"high_watermark": -1},
            ),
            versions=(0, 12),
        ),
    ),
    ApiKey.LIST_OFFSETS: (
        _Items(
            "topics",
            "topics",
            within=_Items("partitions", "partitions", values={"timestamp": -1, "leader_epoch": -1}),
        ),
    ),
    ApiKey.METADATA: (_Items("topics", "topics"),),
    ApiKey.OFFSET_COMMIT: (_Items("topics", "topics", within=_Items("partitions", "partitions")),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _Items(
            "v3_and_below_topics",
            "results_by_topic_v3_and_below",
            within=_Items("partitions", "results_by_partition", key="partition_index"),
            versions=(0, 3),
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        _Items("topics", "topics", within=_Items("partitions", "partitions")),
    ),
    ApiKey.OFFSET_FETCH: (
        _Items(
            "topics",
            "topics",
            within=_Items(
                "partition_indexes",
                "partitions",
                key="partition_index",
                values={"committed_offset": -1},
            ),
            versions=(0, 1),
        ),
        _Items("groups", "groups", values={"topics": ()}, versions=(8, 99)),
    ),
    ApiKey.FIND_COORDINATOR: (
        _Items(
            "coordinator_keys",
            "coordinators",
            key="key",
            values={"node_id": -1, "port": -1},
            versions=(4, 99),
        ),
    ),
    ApiKey.DESCRIBE_GROUPS: (_Items("groups", "groups", key="group_id"),),
    ApiKey.CREATE_TOPICS: (
        _Items(
            "topics",
            "topics",
            values={"num_partitions": -1, "replication_factor": -1, "configs": None},
        ),
    ),
    ApiKey.DELETE_TOPICS: (
        _Items("topic_names", "responses", key="name", versions=(0, 5)),
        _Items("topics", "responses", versions=(6, 99)),
    ),
    ApiKey.DELETE_RECORDS: (
        _Items(
            "topics",
            "topics",
            within=_Items("partitions", "partitions", values={"low_watermark": -1}),
        ),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        _Items(
            "topics",
            "topics",
            within=_Items("partitions", "partitions", values={"leader_epoch": -1}),
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        _Items(
            "markers",
            "markers",
            within=_Items(
                "topics",
                "topics",
                within=_Items("partition_indexes", "partitions", key="partition_index"),
            ),
        ),
    ),
    ApiKey.CREATE_ACLS: (_Items("creations", "results"),),
    ApiKey.DELETE_ACLS: (_Items("filters", "filter_results"),),
    ApiKey.DESCRIBE_CONFIGS: (_Items("resources", "results"),),
    ApiKey.ALTER_CONFIGS: (_Items("resources", "responses"),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (_Items("resources", "responses"),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        _Items(
            "dirs.topics",
            "results",
            renamed={"topic_name": "name"},
            within=_Items("partitions", "partitions", key="partition_index"),
        ),
    ),
    ApiKey.CREATE_PARTITIONS: (_Items("topics", "results"),),
    ApiKey.DELETE_GROUPS: (_Items("groups_names", "results", key="group_id"),),
    ApiKey.ELECT_LEADERS: (
        _Items(
            "topic_partitions",
            "replica_election_results",
            within=_Items("partitions", "partition_result", key="partition_id"),
        ),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (
        _Items(
            "topics",
            "topics",
            within=_Items("partition_indexes", "partitions", key="partition_index"),
        ),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        _Items("transactional_ids", "transaction_states", key="transactional_id"),
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (_Items("topics", "topics", values={"partitions": ()}),),
}


def error_answer(key: ApiKey, version: int, request: Any, error_code: ErrorCode) -> Response:
    """The answer to a request that is refused as a whole. MalformedMessage for one that gets no answers (acks=0)."""
    if key == ApiKey.PRODUCE and request.acks == 0:
        raise MalformedMessage("acks=0 and an error: closing is the only way to tell")
    answer_class = cast(Any, response_class(key))
    errors = ERROR_FIELDS.intersection(answer_class.__slots__)
    values: dict[str, Any] = dict.fromkeys(errors, error_code)
    for items in _ITEMS.get(key, ()):
        if items.versions[0] <= version <= items.versions[1]:
            made = _made(items, _asked(request, items.asked), answer_class, error_code)
            values[items.answered] = made
    return cast(Response, answer_class(**values))


def _asked(message: Any, path: str) -> Iterator[Any]:
    """The elements of an array in the request, or of the arrays in its elements. A null array has none."""
    name, _, rest = path.partition(".")
    for element in getattr(message, name) or ():
        if rest:
            yield from _asked(element, rest)
        else:
            yield element


def _made(items: _Items, asked: Iterable[Any], parent: Any, error_code: ErrorCode) -> list[Any]:
    answer_class = _element_class(parent, items.answered)
    names = answer_class.__slots__
    answers = []
    for element in asked:
        values: dict[str, Any] = {}
        if items.key:
            values[items.key] = element
        else:
            for name in names:
                source = items.renamed.get(name, name)
                if hasattr(element, source):
                    values[name] = getattr(element, source)
        values |= items.values
        values |= dict.fromkeys(ERROR_FIELDS.intersection(names), error_code)
        if items.within is not None:
            within = _asked(element, items.within.asked)
            values[items.within.answered] = _made(items.within, within, answer_class, error_code)
        answers.append(answer_class(**values))
    return answers


def _element_class(parent: Any, field: str) -> Any:
    (kind,) = (row[1] for row in parent.SCHEMA if row[0] == field)
    return kind[0]
