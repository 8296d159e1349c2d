"""Which schema of the registry a key or value is written with, as a request names it. Pure."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from headrace.rest.payloads.formats import Format


class SubjectStrategy(Enum):
    """How the subject is made where a request does not name it; the value is Confluent's name."""

    TOPIC_NAME = "TOPIC_NAME"
    RECORD_NAME = "RECORD_NAME"
    TOPIC_RECORD_NAME = "TOPIC_RECORD_NAME"


class SchemaSelector(NamedTuple):
    """An id, a version of a subject, a text to be registered, or, with none of them, the newest version of a subject."""

    topic: str
    is_key: bool
    format: Format | None = None
    subject: str | None = None
    strategy: SubjectStrategy | None = None
    schema_id: int | None = None
    version: int | None = None
    text: str | None = None

    @property
    def means_newest(self) -> bool:
        """Whether another schema may be meant in a while."""
        return self.schema_id is None and self.version is None and self.text is None

    def subject_of(self, record_name: str | None) -> str | None:
        """The subject; None where it is made of a record's name and there is none."""
        if self.subject is not None:
            return self.subject
        strategy = self.strategy or SubjectStrategy.TOPIC_NAME
        if strategy is SubjectStrategy.TOPIC_NAME:
            return f"{self.topic}-{'key' if self.is_key else 'value'}"
        if record_name is None:
            return None
        if strategy is SubjectStrategy.RECORD_NAME:
            return record_name
        return f"{self.topic}-{record_name}"
