"""Names of subjects, by Confluent's strategies: after the topic, after the record, or after both. Pure."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from headrace.errors import HeadraceError

_QUALIFIED: Final = re.compile(r":(\.[^:]*):.*", re.DOTALL)


class NoSubject(HeadraceError):
    """A strategy cannot name a subject; the message says why."""


class SubjectNameStrategy(Enum):
    """What a subject is named after. The values are Confluent's class names."""

    TOPIC = "TopicNameStrategy"
    RECORD = "RecordNameStrategy"
    TOPIC_RECORD = "TopicRecordNameStrategy"


def parse_strategy(text: str) -> SubjectNameStrategy:
    """A strategy by the name of its class, with or without the package, or in short: topic, record, topic-record.

    Raises ValueError.
    """
    name = text.strip().rpartition(".")[2]
    short = name.upper().replace("-", "_")
    for each in SubjectNameStrategy:
        if name == each.value or short == each.name:
            return each
    known = ", ".join(each.value for each in SubjectNameStrategy)
    raise ValueError(f"'{text}' is no subject name strategy: there are {known}")


def subject_name(
    strategy: SubjectNameStrategy, topic: str, *, is_key: bool, record_name: str, context: str = ""
) -> str:
    """The subject of a topic's keys or values. Raises NoSubject."""
    if strategy is SubjectNameStrategy.TOPIC:
        return in_context(context, f"{topic}-{'key' if is_key else 'value'}")
    if not record_name:
        part = "key" if is_key else "value"
        raise NoSubject(
            f"with {strategy.value}, the schema of the {part} must be a record, which has a name"
        )
    name = f"{topic}-{record_name}" if strategy is SubjectNameStrategy.TOPIC_RECORD else record_name
    return in_context(context, name)


def in_context(context: str, subject: str) -> str:
    """The subject within a context such as `.sales`; a subject that names its own context stays as it is."""
    if not context or context == "." or context_of(subject):
        return subject
    return f":{context if context.startswith('.') else '.' + context}:{subject}"


def context_of(subject: str) -> str:
    """The context that a subject such as `:.sales:orders-value` names, or nothing."""
    match = _QUALIFIED.fullmatch(subject)
    return "" if match is None else match[1]
