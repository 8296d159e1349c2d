"""What users may say to `format("headrace")`: the options of Spark's Kafka connector with their meanings, and a few of our own.

Pure: text in, values out. An option that is unknown, or whose value makes no sense, is an OptionError that says what would.
Spark hands option names over in lower case; the names are written here as users know them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from headrace.errors import HeadraceError

EARLIEST: Final = -2
LATEST: Final = -1
# Of a record batch that is written: below Kafka's default for max.message.bytes, header and growth by numbers included.
BATCH_BYTES: Final = 900_000

KAFKA: Final = "kafka."
REGISTRY: Final = "schemaregistry."
# How keys and values are written, in sources and in sinks.
FORMAT_OPTIONS: Final = (
    "keyFormat",
    "valueFormat",
    "keySchema",
    "valueSchema",
    "keySchemaReferences",
    "valueSchemaReferences",
    "keySchemaVersion",
    "valueSchemaVersion",
    "keySchemaId",
    "valueSchemaId",
    "keySubject",
    "valueSubject",
    "keyMessage",
    "valueMessage",
    "schemaRegistry",
)
READ_ONLY: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
    *FORMAT_OPTIONS,
    "onDecodeError",
    "deadLetterTopic",
    "commitGroup",
)
BATCH_ONLY: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
SOURCE_OPTIONS: Final = (*READ_ONLY, *BATCH_ONLY, *STREAM_ONLY)
SINK_OPTIONS: Final = (
    "topic",
    "includeHeaders",
    "deliveryGuarantee",
    "txnAppId",
    "txnVersion",
    "failOnDataLoss",
    *FORMAT_OPTIONS,
)
# Spark gives these to a source or a sink as well.
SPARKS_OWN: Final = ("path", "checkpointLocation", "queryName", "outputMode", "mergeSchema")
KAFKA_SETTINGS: Final = (
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "security.protocol",
    "group.id",
    "isolation.level",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "max.partition.fetch.bytes",
    "metadata.max.age.ms",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "delivery.timeout.ms",
    "acks",
    "batch.size",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "enable.idempotence",
    "transaction.timeout.ms",
)
# Names of Confluent's serializers, and how long the registry is waited for.
REGISTRY_SETTINGS: Final = (
    "url",
    "basic.auth.user.info",
    "ssl.ca.location",
    "request.timeout.ms",
    "total.timeout.ms",
    "context",
    "key.subject.name.strategy",
    "value.subject.name.strategy",
    "auto.register.schemas",
    "use.latest.version",
    "normalize.schemas",
)
# As Spark's connector refuses them, and for the same reasons.
REFUSED_SETTINGS: Final = {
    "auto.offset.reset": "use the option startingOffsets instead",
    "key.deserializer": "use keyFormat, or functions of DataFrames",
    "value.deserializer": "use valueFormat, or functions of DataFrames",
    "key.serializer": "use keyFormat, or functions of DataFrames",
    "value.serializer": "use valueFormat, or functions of DataFrames",
    "enable.auto.commit": "offsets are kept in Spark's checkpoint; commitGroup shows them to a group",
    "transactional.id": "deliveryGuarantee=exactly-once makes its own, from the query's id",
    "interceptor.classes": "there is no Java here to run interceptors",
}
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)?")
_UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

PartitionNumbers = Mapping[str, Mapping[int, int]]  # topic, partition, number


class OptionError(HeadraceError, ValueError):
    """An option is unknown, or its value makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options by their names, whatever their case."""

    values: Mapping[str, str]

    def text(self, name: str, otherwise: str = "") -> str:
        return self.values.get(name.lower(), otherwise)

    def has(self, name: str) -> bool:
        return name.lower() in self.values

    def flag(self, name: str, *, otherwise: bool) -> bool:
        given = self.text(name, str(otherwise)).strip().lower()
        if given not in ("true", "false"):
            raise OptionError(f"{name}={given} is neither true nor false")
        return given == "true"

    def number(self, name: str, otherwise: int | None = None, *, at_least: int = 1) -> int | None:
        if not self.has(name):
            return otherwise
        given = self.text(name).strip()
        if not re.fullmatch(r"-?\d+", given) or int(given) < at_least:
            raise OptionError(f"{name}={given} is not a whole number of at least {at_least}")
        return int(given)

    def one_of(self, name: str, allowed: Iterable[str], otherwise: str) -> str:
        given = self.text(name, otherwise).strip()
        by_lower = {each.lower(): each for each in allowed}
        if given.lower() not in by_lower:
            raise OptionError(
                f"{name}={given} is not one of {', '.join(by_lower.values())}{_near(given, by_lower)}"
            )
        return by_lower[given.lower()]

    def duration_ms(self, name: str, otherwise: str) -> int:
        return duration_ms(name, self.text(name, otherwise))

    def kafka(self, name: str, otherwise: str = "") -> str:
        """A setting of Kafka's clients, given as kafka.NAME."""
        return self.text(KAFKA + name, otherwise)

    def registry(self, name: str, otherwise: str = "") -> str:
        """A setting of Confluent's serializers, given as schemaRegistry.NAME."""
        return self.text(REGISTRY + name, otherwise)

    def registry_number(self, name: str, otherwise: int) -> int:
        return self.number(f"schemaRegistry.{name}", otherwise) or 0

    def kafka_number(self, name: str, otherwise: int) -> int:
        return self.number(KAFKA + name, otherwise, at_least=0) or 0


def duration_ms(name: str, text: str) -> int:
    """A duration such as 30s. Raises OptionError with the option's name."""
    given = text.strip().lower()
    found = _DURATION.fullmatch(given)
    if found is None:
        raise OptionError(f"{name}={given} is not a duration such as 500ms, 30s or 15m")
    return int(found[1]) * _UNIT_MS[found[2] or "ms"]


def checked(options: Mapping[str, str], allowed: Iterable[str], *, where: str) -> Options:
    """The options, after every name has been looked at. Raises OptionError."""
    found = Options(values={name.lower(): value for name, value in options.items()})
    known = {name.lower(): name for name in (*allowed, *SPARKS_OWN)}
    settings = {KAFKA + name for name in KAFKA_SETTINGS}
    for name in found.values:
        if name.startswith(KAFKA):
            _check_setting(name, settings)
        elif name.startswith(REGISTRY):
            _check_registry_setting(name)
        elif name not in known:
            elsewhere = {each.lower(): each for each in (*SOURCE_OPTIONS, *SINK_OPTIONS)}
            if name in elsewhere:
                raise OptionError(f"the option {elsewhere[name]} does not apply to {where}")
            names = known | {each: each for each in settings}
            raise OptionError(f"there is no option '{name}' of {where}{_near(name, names)}")
    if not found.kafka("bootstrap.servers").strip():
        raise OptionError(
            "the option kafka.bootstrap.servers is missing: host:port of one or more brokers"
        )
    return found


def _check_setting(name: str, settings: set[str]) -> None:
    plain = name.removeprefix(KAFKA)
    if plain in REFUSED_SETTINGS:
        raise OptionError(f"the option {name} is not supported: {REFUSED_SETTINGS[plain]}")
    if name in settings:
        return
    if plain.startswith(("sasl.", "ssl.")):
        raise OptionError(
            f"the option {name} is not supported: only PLAINTEXT listeners can be used"
        )
    # A setting that only a Java client has does no harm here; one that is nearly ours is a slip.
    near = get_close_matches(name, settings, 1, cutoff=0.85)
    if near:
        raise OptionError(f"there is no option '{name}'; did you mean '{near[0]}'?")


def _check_registry_setting(name: str) -> None:
    known = {REGISTRY + each: f"schemaRegistry.{each}" for each in REGISTRY_SETTINGS}
    if name not in known:
        plain = name.removeprefix(REGISTRY)
        raise OptionError(f"there is no option 'schemaRegistry.{plain}'{_near(name, known)}")


def _near(name: str, names: Mapping[str, str]) -> str:
    near = get_close_matches(name.lower(), list(names), 1)
    return f"; did you mean '{names[near[0]]}'?" if near else ""


def numbers_by_partition(name: str, text: str) -> PartitionNumbers:
    """`{"topic": {"0": 23}}` as numbers."""
    try:
        found = json.loads(text)
        return {
            topic: {int(partition): _whole(number) for partition, number in numbers.items()}
            for topic, numbers in found.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise OptionError(
            f'{name}={text} is not JSON such as {{"topic":{{"0":23,"1":-2}}}}: {error}'
        ) from error


def _whole(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{number!r} is not a whole number")
    return number
