"""Where replicas shall go: the JSON files of `headrace reassign-partitions`, proposals, and what follows for throttles. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.cli.shell.command_line import Failure
from headrace.client.admin.reassignments import Reassignment
from headrace.ids import TopicPartition

ANY_LOG_DIR = "any"
PLAN_EXAMPLE = (
    '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2],'
    ' "log_dirs": ["any", "any"]}]}'
)
TOPICS_EXAMPLE = '{"version": 1, "topics": [{"topic": "orders"}]}'

Assignment = Mapping[TopicPartition, Sequence[int]]


class Replica(NamedTuple):
    """A copy of a partition. In the order in which Kafka prints them."""

    broker_id: int
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a reassignment file says, doubled entries included."""

    entries: Sequence[tuple[TopicPartition, Sequence[int]]]
    log_dirs: Mapping[Replica, str]

    @property
    def targets(self) -> dict[TopicPartition, Sequence[int]]:
        return dict(self.entries)


class Move(NamedTuple):
    """Brokers that give a partition away, and brokers that take it."""

    sources: frozenset[int]
    destinations: frozenset[int]


def parse_plan(text: str) -> Plan:
    """The contents of `--reassignment-json-file`. Raises Failure."""
    document = _document(text, PLAN_EXAMPLE)
    entries: list[tuple[TopicPartition, Sequence[int]]] = []
    log_dirs: dict[Replica, str] = {}
    try:
        for each in document.get("partitions", ()):
            partition = TopicPartition(str(each["topic"]), int(each["partition"]))
            replicas = [int(number) for number in each["replicas"]]
            paths = [str(path) for path in each.get("log_dirs", [ANY_LOG_DIR] * len(replicas))]
            if len(paths) != len(replicas):
                raise Failure(
                    f"Size of replicas list {replicas} is different from size of log dirs list"
                    f" {_java_list(paths)} for partition {partition}"
                )
            entries.append((partition, replicas))
            for broker_id, path in zip(replicas, paths, strict=True):
                if path != ANY_LOG_DIR:
                    log_dirs[Replica(broker_id, *partition)] = path
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise _not_understood(wrong, PLAN_EXAMPLE) from wrong
    return Plan(entries=entries, log_dirs=log_dirs)


def check_plan(plan: Plan) -> None:
    """Raise Failure for a plan that cannot be carried out, in Kafka's words."""
    if not plan.entries:
        raise Failure("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.entries):
        raise Failure("Partition replica list cannot be empty")
    doubled = doubles(partition for partition, _ in plan.entries)
    if doubled:
        names = ",".join(map(str, doubled))
        raise Failure(f"Partition reassignment contains duplicate topic partitions: {names}")
    twice = [
        f"{partition} contains multiple entries for {','.join(map(str, doubles(replicas)))}"
        for partition, replicas in plan.entries
        if doubles(replicas)
    ]
    if twice:
        raise Failure(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(twice)}"
        )


def parse_topics(text: str) -> list[str]:
    """The contents of `--topics-to-move-json-file`. Raises Failure."""
    document = _document(text, TOPICS_EXAMPLE)
    try:
        topics = [str(each["topic"]) for each in document.get("topics", ())]
    except (AttributeError, KeyError, TypeError) as wrong:
        raise _not_understood(wrong, TOPICS_EXAMPLE) from wrong
    if doubles(topics):
        raise Failure(
            f"List of topics to reassign contains duplicate entries: {_java_list(doubles(topics))}"
        )
    return topics


def parse_broker_list(text: str) -> list[int]:
    """The value of `--broker-list`. Raises Failure."""
    try:
        brokers = [int(number) for number in text.split(",")]
    except ValueError:
        raise Failure(
            f"--broker-list: '{text}' is not a list of broker ids", hint="for example: 0,1,2"
        ) from None
    if doubles(brokers):
        raise Failure(f"Broker list contains duplicate entries: {_java_list(doubles(brokers))}")
    return brokers


def plan_json(assignment: Assignment, log_dirs: Mapping[Replica, str] | None = None) -> str:
    """An assignment in the form that `--reassignment-json-file` wants."""
    known = log_dirs or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(replicas),
            "log_dirs": [
                known.get(Replica(broker, *partition), ANY_LOG_DIR) for broker in replicas
            ],
        }
        for partition, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def moves(
    ongoing: Mapping[TopicPartition, Reassignment], targets: Assignment, current: Assignment
) -> dict[TopicPartition, Move]:
    """What moves now, and will with these targets."""
    found = {
        partition: Move(frozenset(each.replicas) - frozenset(each.adding), frozenset(each.adding))
        for partition, each in ongoing.items()
    }
    for partition, replicas in targets.items():
        if partition in found:
            sources = found[partition].sources
        elif partition in current:
            sources = frozenset(current[partition])
        else:
            raise Failure(f"Trying to reassign a topic partition {partition} with 0 replicas")
        found[partition] = Move(sources, frozenset(replicas) - sources)
    return found


def throttled_replicas(moving: Mapping[TopicPartition, Move]) -> dict[str, tuple[str, str]]:
    """By topic: the values of leader. and follower.replication.throttled.replicas."""
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for partition, move in moving.items():
        leaders.setdefault(partition.topic, set()).update(
            f"{partition.partition}:{broker}" for broker in move.sources
        )
        followers.setdefault(partition.topic, set()).update(
            f"{partition.partition}:{broker}" for broker in move.destinations
        )
    return {
        topic: (",".join(sorted(leaders[topic])), ",".join(sorted(followers[topic])))
        for topic in sorted(leaders)
    }


def doubles(values: Iterable[Any]) -> list[Any]:
    """What comes more than once."""
    return [value for value, times in Counter(values).items() if times > 1]


def _document(text: str, example: str) -> dict[str, Any]:
    what, hint = "The input string is not a valid JSON", f"this is the form: {example}"
    try:
        document = json.loads(text)
    except ValueError as wrong:
        raise Failure(what, why=str(wrong), hint=hint) from wrong
    if not isinstance(document, dict):
        raise Failure(what, why="it is not an object: { … }", hint=hint)
    version = document.get("version", 1)
    if version != 1:
        raise Failure(f"Not supported version field value {version}")
    return document


def _not_understood(wrong: Exception, example: str) -> Failure:
    return Failure(
        "the file does not say what to move",
        why=f"{wrong} is missing" if isinstance(wrong, KeyError) else "",
        hint=f"this is the form: {example}",
    )


def _java_list(values: Sequence[object]) -> str:
    return f"[{', '.join(map(str, values))}]"
