"""Options of the sink, parsed from those of a query, whose columns are checked against them.

Apart from `sink` and `row_writing`, because both read the options and `sink` starts `row_writing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headrace.client.idempotent_producer import ACKS_ALL, ProduceSettings
from headrace.pipelines.options.known_options import (
    BATCH_BYTES,
    SINK_OPTIONS,
    OptionError,
    Options,
    checked,
)
from headrace.pipelines.options.schema_options import (
    FormatOptions,
    Registration,
    RegistryOptions,
    parse_formats,
    parse_registration,
)
from headrace.pipelines.options.source_options import require_plaintext
from headrace.records.compression import Codec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_COLUMNS: Final = {
    "value": ("string", "binary"),
    "key": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_ACKS: Final = {
    "all": ACKS_ALL,
    "-1": ACKS_ALL,
    "1": 1,
    "0": 1,
}  # an answer is waited for in any case
AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"
# The brokers' default of transaction.max.timeout.ms: a driver may need minutes until it is back to finish a batch.
_TRANSACTION_TIMEOUT_MS: Final = 900_000
_CODECS: Final = {"none": Codec.NONE} | {
    each.name.lower(): each for each in Codec if each is not Codec.NONE
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Everything a sink was told."""

    bootstrap_servers: str
    client_id: str
    topic: str
    batch_bytes: int
    settings: ProduceSettings
    exactly_once: bool
    transaction_timeout_ms: int
    fail_on_data_loss: bool
    txn_app_id: str  # with txn_version: names a batch write, so that its repetition writes nothing
    txn_version: int | None
    key: FormatOptions
    value: FormatOptions
    registry: RegistryOptions | None
    registration: Registration
    # Of the columns that are written with schemas, as they were planned: a schema that is derived must not differ between tasks.
    types: Mapping[str, pa.DataType]


def parse_sink_options(given: dict[str, str], schema: StructType) -> SinkOptions:
    """Raises OptionError for options or columns that make no sense."""
    options = checked(given, SINK_OPTIONS, where="a sink")
    require_plaintext(options)
    exactly_once = (
        options.one_of("deliveryGuarantee", (AT_LEAST_ONCE, EXACTLY_ONCE), AT_LEAST_ONCE)
        == EXACTLY_ONCE
    )
    topic = options.text("topic").strip()
    key, value, registry = parse_formats(options)
    formats = {"key": key, "value": value}
    for each in formats.values():
        if each.format == "json":
            raise OptionError(f"{each.column}Format=json is for reading: use to_json to write")
    for column in schema.fields:
        kind = column.dataType.simpleString()
        if column.name not in _COLUMNS:
            known = ", ".join(_COLUMNS)
            raise OptionError(f"there is no column '{column.name}' in a topic: there are {known}")
        if column.name in formats and formats[column.name].has_registry:
            continue  # its schema says what it may be
        if kind not in _COLUMNS[column.name]:
            wanted = " or ".join(_COLUMNS[column.name])
            raise OptionError(f"the column {column.name} must be {wanted}, not {kind}")
    names = schema.fieldNames()
    if "value" not in names:
        raise OptionError("there is no column 'value': what should be written?")
    if not topic and "topic" not in names:
        raise OptionError("neither the option topic nor a column 'topic' says where to write")
    return SinkOptions(
        bootstrap_servers=options.kafka("bootstrap.servers"),
        client_id=options.kafka("client.id", "headrace-spark"),
        topic=topic,
        batch_bytes=max(options.kafka_number("batch.size", BATCH_BYTES), 1),
        settings=_settings(options, exactly_once=exactly_once),
        exactly_once=exactly_once,
        transaction_timeout_ms=options.kafka_number(
            "transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS
        ),
        fail_on_data_loss=options.flag("failOnDataLoss", otherwise=True),
        txn_app_id=_txn_app_id(options, exactly_once=exactly_once),
        txn_version=options.number("txnVersion", at_least=0),
        key=key,
        value=value,
        registry=registry,
        registration=parse_registration(options),
        types={} if registry is None else _arrow_types(schema),
    )


def _arrow_types(schema: StructType) -> dict[str, pa.DataType]:
    from pyspark.sql.pandas.types import to_arrow_type

    return {each.name: to_arrow_type(each.dataType, timezone="UTC") for each in schema.fields}


def _txn_app_id(options: Options, *, exactly_once: bool) -> str:
    if options.has("txnAppId") != options.has("txnVersion"):
        raise OptionError("txnAppId and txnVersion name a batch together: one of them is missing")
    if options.has("txnAppId") and not exactly_once:
        raise OptionError("txnAppId and txnVersion need deliveryGuarantee=exactly-once")
    app_id = options.text("txnAppId").strip()
    if options.has("txnAppId") and not app_id:
        raise OptionError("txnAppId is empty")
    return app_id


def _settings(options: Options, *, exactly_once: bool) -> ProduceSettings:
    acks = _ACKS[options.one_of("kafka.acks", _ACKS, "all")]
    idempotent = options.flag("kafka.enable.idempotence", otherwise=acks == ACKS_ALL)
    if idempotent and acks != ACKS_ALL:
        raise OptionError("kafka.enable.idempotence=true needs kafka.acks=all")
    if exactly_once and not idempotent:
        raise OptionError(
            "deliveryGuarantee=exactly-once needs kafka.acks=all and kafka.enable.idempotence=true"
        )
    name = options.one_of("kafka.compression.type", _CODECS, "none")
    level = f"kafka.compression.{name}.level"
    return ProduceSettings(
        codec=_CODECS[name],
        compression_level=options.number(level, at_least=-(2**17)) if options.has(level) else None,
        acks=acks,
        idempotent=idempotent,
        request_timeout_ms=options.kafka_number("request.timeout.ms", 30_000),
        give_up_after_s=options.kafka_number("delivery.timeout.ms", 120_000) / 1000,
        metadata_max_age_s=options.kafka_number("metadata.max.age.ms", 1000) / 1000,
    )
