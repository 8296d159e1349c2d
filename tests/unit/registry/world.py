"""A registry whose writes are read back at once, for tests of its rules."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.registry import errors
from headrace.registry.judging.judge import Judgement, judge
from headrace.registry.rules.decisions import Registry
from headrace.registry.rules.lookup import FoundVersion
from headrace.registry.rules.submitted import SubmittedSchema
from headrace.registry.state.names import parse_subject
from headrace.registry.state.records import Entry
from headrace.registry.state.subjects import Subjects
from headrace.registry.state.writes import Write

INT, LONG, STRING = '"int"', '"long"', '"string"'


class World:
    """Decides, writes and reads back."""

    def __init__(self, **options: Any) -> None:
        self.registry = Registry(Subjects(), **options)
        self.written: list[Entry] = []

    def apply(self, decision: Write[Any]) -> Any:
        for entry in decision.entries:
            self.registry.subjects.apply(entry)
        self.written += decision.entries
        return decision.answer

    def submit(
        self, subject: str, wanted: SubmittedSchema, *, normalize: bool = False, force: bool = False
    ) -> FoundVersion:
        """Register at the primary, as it would be after a look-up found nothing."""
        name, registration = parse_subject(subject), self.registry.registration
        question = registration.question(name, wanted, normalize=normalize, force=force)
        decision = registration.register(name, wanted, judge(question), force=force)
        answer: FoundVersion = self.apply(decision)
        return answer

    def register(self, subject: str, text: str = INT, **more: Any) -> tuple[int, int]:
        found = self.submit(subject, SubmittedSchema(schema=text, **more))
        return found.version.schema_id, found.number

    def find(self, subject: str, text: str, *, deleted: bool = False, **more: Any) -> int | None:
        name, wanted = parse_subject(subject), SubmittedSchema(schema=text, **more)
        question = self.registry.registration.lookup_question(name, wanted, normalize=False)
        judgement: Judgement = judge(question)
        found = self.registry.registration.find(name, wanted, judgement, deleted=deleted)
        return None if found is None else found.number

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]:
        deletion = self.registry.deletion
        decision = deletion.delete_subject(parse_subject(subject), permanent=permanent)
        deleted: list[int] = self.apply(decision)
        return deleted

    def delete_version(self, subject: str, version: str, *, permanent: bool = False) -> int:
        deletion = self.registry.deletion
        decision = deletion.delete_version(parse_subject(subject), version, permanent=permanent)
        deleted: int = self.apply(decision)
        return deleted

    def configure(self, scope: str | None, **changes: Any) -> None:
        self.apply(self.registry.settings.set_config(scope, changes))

    def set_mode(self, scope: str | None, mode: str | None, *, force: bool = True) -> None:
        self.apply(self.registry.settings.set_mode(scope, mode, force=force))


def code_of(action: Callable[[], object]) -> int:
    with pytest.raises(errors.RegistryError) as refused:
        action()
    assert refused.value.status == int(str(refused.value.code)[:3])
    return refused.value.code
