"""New topics.

Owns what makes a request acceptable, with the codes and texts that Kafka answers (a refusal without
text stands for the code's own). A topic exists from the moment its node does; what a crash leaves
unfinished after that, its partitions' states, the next controller completes.
"""

import re
from collections import Counter
from collections.abc import Mapping
from uuid import UUID

import msgspec

from headrace.controller.assignments import (
    assigned,
    check_fits,
    chosen,
    first_states,
    state_groups,
)
from headrace.controller.changes import (
    Change,
    ConfigChanged,
    TopicCreated,
)
from headrace.controller.core import Core, Decision, Group
from headrace.controller.values import ConfigKind
from headrace.coordination.nodes import (
    ConfigNode,
    PartitionStateNode,
    TopicNode,
)
from headrace.coordination.store import Create, Operation
from headrace.ids import NO_TOPIC_ID, text_of_id
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

MAX_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def name_fault(name: str) -> str | None:
    """Why this cannot be the name of a topic, or None."""
    fault = None
    if not name:
        fault = "the empty string is not allowed"
    elif name in (".", ".."):
        fault = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        fault = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL_NAME.fullmatch(name):
        fault = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None if fault is None else f"Topic name is invalid: {fault}"


class NewTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as requested; -1 means the default."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    # (partition, brokers), as they came: the order and the doubles are for us to judge.
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: Mapping[str, str | None] = {}


class TopicAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for one topic of a request."""

    name: str | None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: UUID = NO_TOPIC_ID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


class CreateTopics(msgspec.Struct, frozen=True, kw_only=True):
    """Create topics, or only validate them."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False

    def decide(self, core: Core) -> Decision[tuple[TopicAnswer, ...]]:
        """Create those that can be; each stands for itself."""
        names = Counter(topic.name for topic in self.topics)
        colliding = _Collisions(core)
        answers = []
        groups: list[Group] = []
        changes: list[Change] = []
        for topic in {topic.name: topic for topic in self.topics}.values():
            try:
                check_single(topic.name, names)
                answer, topic_groups, topic_changes = _create(core, topic, colliding)
            except Refused as refused:
                answers.append(
                    TopicAnswer(name=topic.name, error=refused.error_code, message=refused.message)
                )
                continue
            answers.append(answer)
            groups += topic_groups
            changes += topic_changes
        if self.validate_only:
            return Decision(answer=tuple(answers))
        return Decision(answer=tuple(answers), groups=tuple(groups), changes=tuple(changes))


def check_single(name: str, names: Counter[str]) -> None:
    """Refuse a topic that a request names twice."""
    if names[name] > 1:
        raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def _create(
    core: Core, topic: NewTopic, colliding: "_Collisions"
) -> tuple[TopicAnswer, list[Group], list[Change]]:
    fault = name_fault(topic.name)
    if fault is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if topic.name in core.state.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    if topic.name in core.state.unreadable_topics:
        fault = core.state.unreadable_topics[topic.name]
        text = f"Topic '{topic.name}' already exists, but its state cannot be read: {fault}"
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, text)
    colliding.add(topic.name)
    configs = _checked_configs(core, topic)
    count, factor = topic.num_partitions, topic.replication_factor
    if topic.assignments:
        replicas = assigned(core, topic.assignments, count=count, factor=factor)
    else:
        replicas = chosen(core, count, factor)
    partitions = first_states(core, replicas, configs)
    topic_id = core.new_topic_id()
    node = TopicNode(text_of_id(topic_id), dict(enumerate(replicas)))
    head: list[Operation] = []
    changes: list[Change] = []
    if configs:
        path = ConfigNode.path("topics", topic.name)
        head.append(core.nodes.put(path, ConfigNode(configs).encode()))
        changes.append(ConfigChanged(ConfigKind.TOPIC, topic.name, configs))
    head.append(Create(TopicNode.path(topic.name), node.encode()))
    head.append(Create(PartitionStateNode.folder(topic.name)))
    check_fits(core, topic.name, len(partitions), tuple(head))
    changes.append(TopicCreated(topic.name, topic_id, partitions))
    answer = TopicAnswer(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=len(partitions),
        replication_factor=len(replicas[0]),
        configs=configs,
    )
    return answer, [tuple(head), *state_groups(core, topic.name, 0, partitions)], changes


def _checked_configs(core: Core, topic: NewTopic) -> dict[str, str]:
    nulls = [key for key, value in topic.configs.items() if value is None]
    if nulls:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    configs = {key: value for key, value in topic.configs.items() if value is not None}
    fault = core.config_rules.check(ConfigKind.TOPIC, topic.name, configs)
    if fault is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, fault)
    return configs


class _Collisions:
    """Names that differ only in '.' and '_' would be one in the names of metrics."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._unified: dict[str, str] | None = None

    def add(self, name: str) -> None:
        """Refuse a name that collides with another; else count it among them."""
        if "." not in name and "_" not in name:
            return
        if self._unified is None:
            topics = self._core.state.topics
            self._unified = {
                known.replace(".", "_"): known for known in topics if "." in known or "_" in known
            }
        other = self._unified.setdefault(name.replace(".", "_"), name)
        if other != name:
            raise Refused(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )
