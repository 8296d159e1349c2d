"""The options of the source as values: which topics, from where to where, in which portions, and how records are opened. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headrace.pipelines.offset_ranges import OffsetRange, cut, shared_out
from headrace.pipelines.options.known_options import (
    BATCH_ONLY,
    EARLIEST,
    LATEST,
    READ_ONLY,
    STREAM_ONLY,
    OptionError,
    Options,
    PartitionNumbers,
    checked,
    numbers_by_partition,
)
from headrace.pipelines.options.schema_options import FormatOptions, RegistryOptions, parse_formats

ENOUGH_FOR_A_TASK: Final = (
    5000  # offsets: some milliseconds of reading; Spark takes longer than that to run a task
)
_STRATEGIES: Final = ("error", "latest")
_ISOLATION_LEVELS: Final = ("read_uncommitted", "read_committed")


class OnDecodeError(Enum):
    """What becomes of a record that is not what its format says."""

    FAIL = "fail"
    NULL = "null"
    SKIP = "skip"
    DEAD_LETTER_TOPIC = "deadLetterTopic"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChoice:
    """Which topics, or which partitions of them. One of the three is given."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: Mapping[str, tuple[int, ...]] | None = None

    def topics_among(self, names: list[str]) -> list[str]:
        """The chosen ones of all topics there are; those named are chosen whether they are there or not."""
        if self.pattern is not None:
            whole = re.compile(self.pattern)
            return sorted(name for name in names if whole.fullmatch(name))
        return sorted(self.names or self.partitions or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where reading begins or ends: an offset per partition, a time, or a word."""

    everywhere: int | None = None  # EARLIEST or LATEST
    committed: bool = False
    offsets: PartitionNumbers | None = None
    timestamps: PartitionNumbers | None = None
    timestamp_ms: int | None = None
    unmatched_is_latest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Portions:
    """How much is read at once, and in how many pieces."""

    max_offsets: int | None
    min_offsets: int | None
    max_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None

    def tasks_of(self, ranges: Iterable[OffsetRange]) -> list[list[OffsetRange]]:
        """The ranges that each task reads. Where the user said nothing about tasks, small ranges share one."""
        pieces = cut(
            ranges, min_partitions=self.min_partitions, max_records=self.max_records_per_partition
        )
        is_free = self.min_partitions is None and self.max_records_per_partition is None
        return shared_out(pieces, ENOUGH_FOR_A_TASK if is_free else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How records become columns."""

    include_headers: bool
    key: FormatOptions
    value: FormatOptions
    registry: RegistryOptions | None
    on_decode_error: OnDecodeError
    dead_letter_topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Everything a source was told."""

    bootstrap_servers: str
    client_id: str
    choice: TopicChoice
    starting: Place
    ending: Place
    portions: Portions
    opening: Opening
    fail_on_data_loss: bool
    commit_group: str
    group_id: str
    read_committed: bool
    poll_timeout_ms: int
    metadata_ttl_ms: int
    partition_max_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    rack_id: str


def parse_source_options(given: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Raises OptionError."""
    allowed = (*READ_ONLY, *(STREAM_ONLY if streaming else BATCH_ONLY))
    where = "a streaming query" if streaming else "a batch query"
    options = checked(given, allowed, where=where)
    require_plaintext(options)
    isolation = options.one_of("kafka.isolation.level", _ISOLATION_LEVELS, "read_uncommitted")
    return SourceOptions(
        bootstrap_servers=options.kafka("bootstrap.servers"),
        client_id=options.kafka("client.id", "headrace-spark"),
        choice=topic_choice(options),
        starting=_starting(options, streaming=streaming),
        ending=_ending(options),
        portions=_portions(options),
        opening=opening_of(options),
        fail_on_data_loss=options.flag("failOnDataLoss", otherwise=True),
        commit_group=options.text("commitGroup"),
        group_id=options.text("commitGroup") or options.kafka("group.id"),
        read_committed=isolation == "read_committed",
        poll_timeout_ms=options.number("kafkaConsumer.pollTimeoutMs", 120_000) or 0,
        metadata_ttl_ms=options.number("partition.metadata.cache.ttl.ms", 1000, at_least=-1) or 0,
        partition_max_bytes=options.kafka_number("max.partition.fetch.bytes", 8 * 1024 * 1024),
        fetch_max_bytes=options.kafka_number("fetch.max.bytes", 64 * 1024 * 1024),
        fetch_max_wait_ms=options.kafka_number("fetch.max.wait.ms", 500),
        rack_id=options.kafka("client.rack"),
    )


def require_plaintext(options: Options) -> None:
    protocol = options.kafka("security.protocol", "PLAINTEXT").upper()
    if protocol != "PLAINTEXT":
        raise OptionError(f"kafka.security.protocol={protocol}: only PLAINTEXT can be used")


def topic_choice(options: Options) -> TopicChoice:
    """Which topics are read. Raises OptionError."""
    names = ("subscribe", "subscribePattern", "assign")
    given = [name for name in names if options.has(name)]
    if len(given) != 1:
        which = "none is" if not given else f"{' and '.join(given)} are"
        raise OptionError(f"one of {', '.join(names)} says what to read; {which} given")
    text = options.text(given[0]).strip()
    if given[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(
                f"subscribePattern={text} is no regular expression: {error}"
            ) from error
        return TopicChoice(pattern=text)
    if given[0] == "subscribe":
        topics = tuple(name.strip() for name in text.split(",") if name.strip())
        if not topics:
            raise OptionError("subscribe names no topic")
        return TopicChoice(names=topics)
    try:
        partitions = {
            topic: tuple(sorted({int(each) for each in numbers}))
            for topic, numbers in json.loads(text).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise OptionError(
            f'assign={text} is not JSON such as {{"topic":[0,1]}}: {error}'
        ) from error
    if not any(partitions.values()):
        raise OptionError("assign names no partition")
    return TopicChoice(partitions=partitions)


def _starting(options: Options, *, streaming: bool) -> Place:
    strategy = options.one_of("startingOffsetsByTimestampStrategy", _STRATEGIES, "error")
    timed = _timed(options, "starting", unmatched_is_latest=strategy == "latest")
    if timed is not None:
        return timed
    text = options.text("startingOffsets", "latest" if streaming else "earliest").strip()
    match text.lower():
        case "earliest":
            return Place(everywhere=EARLIEST)
        case "latest" if streaming:
            return Place(everywhere=LATEST)
        case "latest":
            raise OptionError(
                "startingOffsets=latest makes no sense in a batch query: it reads nothing"
            )
        case "committed":
            if not (options.text("commitGroup") or options.kafka("group.id")):
                raise OptionError(
                    "startingOffsets=committed needs commitGroup: the group whose offsets count"
                )
            return Place(committed=True, everywhere=EARLIEST)
    return Place(offsets=_offsets("startingOffsets", text, lowest=EARLIEST))


def _ending(options: Options) -> Place:
    timed = _timed(options, "ending", unmatched_is_latest=True)
    if timed is not None:
        return timed
    text = options.text("endingOffsets", "latest").strip()
    if text.lower() == "latest":
        return Place(everywhere=LATEST)
    if text.lower() == "earliest":
        raise OptionError("endingOffsets=earliest makes no sense: it reads nothing")
    return Place(offsets=_offsets("endingOffsets", text, lowest=LATEST))


def _offsets(name: str, text: str, *, lowest: int) -> PartitionNumbers:
    offsets = numbers_by_partition(name, text)
    for topic, numbers in offsets.items():
        for partition, offset in numbers.items():
            if offset < lowest:
                raise OptionError(f"{name}: {offset} for {topic}-{partition} is no offset")
    return offsets


def _timed(options: Options, which: str, *, unmatched_is_latest: bool) -> Place | None:
    everywhere = options.number(f"{which}Timestamp", at_least=0)
    if everywhere is not None:
        return Place(timestamp_ms=everywhere, unmatched_is_latest=unmatched_is_latest)
    name = f"{which}OffsetsByTimestamp"
    if not options.has(name):
        return None
    found = numbers_by_partition(name, options.text(name))
    return Place(timestamps=found, unmatched_is_latest=unmatched_is_latest)


def _portions(options: Options) -> Portions:
    most, least = options.number("maxOffsetsPerTrigger"), options.number("minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger={least} is more than maxOffsetsPerTrigger={most}")
    return Portions(
        max_offsets=most,
        min_offsets=least,
        max_delay_ms=options.duration_ms("maxTriggerDelay", "15m"),
        min_partitions=options.number("minPartitions"),
        max_records_per_partition=options.number("maxRecordsPerPartition"),
    )


def opening_of(options: Options) -> Opening:
    """How records become columns. Raises OptionError."""
    words = [each.value for each in OnDecodeError]
    on_error = OnDecodeError(options.one_of("onDecodeError", words, OnDecodeError.FAIL.value))
    topic = options.text("deadLetterTopic").strip()
    if on_error is OnDecodeError.DEAD_LETTER_TOPIC and not topic:
        raise OptionError(
            "onDecodeError=deadLetterTopic needs the option deadLetterTopic: its name"
        )
    if topic and on_error is not OnDecodeError.DEAD_LETTER_TOPIC:
        raise OptionError("the option deadLetterTopic needs onDecodeError=deadLetterTopic")
    key, value, registry = parse_formats(options)
    return Opening(
        include_headers=options.flag("includeHeaders", otherwise=False),
        key=key,
        value=value,
        registry=registry,
        on_decode_error=on_error,
        dead_letter_topic=topic,
    )


def columns_ddl(opening: Opening, types: Mapping[str, str]) -> str:
    """The columns of a source whose user gave no schema. `types` has the columns whose types a schema tells. Raises OptionError."""
    fields = [
        f"{each.column} {types.get(each.column) or _type_ddl(each)}"
        for each in (opening.key, opening.value)
    ]
    fields += [
        "topic STRING",
        "partition INT",
        "offset BIGINT",
        "timestamp TIMESTAMP",
        "timestampType INT",
    ]
    if opening.include_headers:
        fields.append("headers ARRAY<STRUCT<key: STRING, value: BINARY>>")
    return ", ".join(fields)


def _type_ddl(wanted: FormatOptions) -> str:
    name = wanted.column
    if wanted.format != "json":
        return wanted.format.upper()
    if not wanted.schema.strip():
        raise OptionError(
            f"{name}Format=json needs {name}Schema, such as 'id BIGINT, name STRING',"
            f" or a schema of the reader whose column {name} is a struct"
        )
    return f"STRUCT<{wanted.schema}>"
