"""The registry's state against a plain model; the same state after a replay, and after a replay of the compacted topic."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.registry.compatibility import Level
from headrace.registry.errors import RegistryError
from headrace.registry.judging.judge import Judgement
from headrace.registry.rules.decisions import Registry
from headrace.registry.rules.submitted import SubmittedSchema
from headrace.registry.state.names import parse_subject
from headrace.registry.state.records import decode, encode_key, encode_value
from headrace.registry.state.subjects import Subjects
from headrace.registry.state.writes import Write

SUBJECTS = st.sampled_from(["a", "b", ":.c:a"])
TEXTS = st.sampled_from([f'"{kind}"' for kind in ("int", "long", "string")])
NUMBERS = st.integers(1, 5)


@dataclass
class ModelVersion:
    text: str
    is_deleted: bool = False


@dataclass
class ModelSubject:
    versions: dict[int, ModelVersion] = field(default_factory=dict)

    def living(self) -> list[int]:
        return [number for number, each in self.versions.items() if not each.is_deleted]


Shown = dict[str, dict[int, tuple[str, bool]]]


def shown(subjects: Subjects) -> Shown:
    return {
        str(name): {
            number: (subjects.schema_of(str(name), version).text, version.is_deleted)
            for number, version in subjects.versions(str(name), deleted=True).items()
        }
        for name in subjects.subjects()
    }


class RegistryAndModel(RuleBasedStateMachine):
    """Decides, writes and reads back at once."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry(Subjects(), default_level=Level.NONE)
        self.topic: list[tuple[bytes, bytes | None]] = []
        self.model: dict[str, ModelSubject] = {}

    def write(self, decision: Write[object]) -> None:
        for entry in decision.entries:
            key, value = encode_key(entry.key), encode_value(entry.value)
            self.topic.append((key, value))
            self.registry.subjects.apply(decode(key, value))

    @rule(subject=SUBJECTS, text=TEXTS)
    def register(self, subject: str, text: str) -> None:
        decision = self.registry.registration.register(
            parse_subject(subject), SubmittedSchema(schema=text), Judgement(text=text), force=False
        )
        self.write(decision)
        versions = self.model.setdefault(subject, ModelSubject()).versions
        same = [number for number in self.model[subject].living() if versions[number].text == text]
        if not same:
            number = max(versions, default=0) + 1
            for gone in [each for each in versions if versions[each].text == text]:
                del versions[gone]
            versions[number] = ModelVersion(text)
        assert decision.answer.number == (max(same) if same else max(versions))

    @rule(subject=SUBJECTS, number=NUMBERS, permanent=st.booleans())
    def delete_version(self, subject: str, number: int, permanent: bool) -> None:
        known = self.model.get(subject, ModelSubject()).versions
        may = number in known and known[number].is_deleted == permanent
        try:
            self.write(
                self.registry.deletion.delete_version(
                    parse_subject(subject), str(number), permanent=permanent
                )
            )
        except RegistryError:
            assert not may
            return
        assert may
        if permanent:
            self._forget(subject, [number])
        else:
            known[number].is_deleted = True

    @rule(subject=SUBJECTS, permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        known = self.model.get(subject, ModelSubject())
        may = bool(known.versions) and bool(known.living()) != permanent
        try:
            self.write(
                self.registry.deletion.delete_subject(parse_subject(subject), permanent=permanent)
            )
        except RegistryError:
            assert not may
            return
        assert may
        if permanent:
            self._forget(subject, list(known.versions))
        else:
            for version in known.versions.values():
                version.is_deleted = True

    def _forget(self, subject: str, numbers: list[int]) -> None:
        for number in numbers:
            del self.model[subject].versions[number]
        if not self.model[subject].versions:
            del self.model[subject]

    @rule(scope=st.sampled_from([None, "a", ":.c:"]), level=st.sampled_from(["FULL", "NONE"]))
    def configure(self, scope: str | None, level: str) -> None:
        self.write(self.registry.settings.set_config(scope, {"compatibility_level": level}))

    @invariant()
    def the_state_is_the_models(self) -> None:
        expected = {
            subject: {
                number: (each.text, each.is_deleted) for number, each in known.versions.items()
            }
            for subject, known in self.model.items()
        }
        assert shown(self.registry.subjects) == expected

    @invariant()
    def a_replay_gives_the_same_state(self) -> None:
        newest = {key: index for index, (key, _) in enumerate(self.topic)}
        compacted = [
            (key, value)
            for index, (key, value) in enumerate(self.topic)
            if newest[key] == index and value is not None
        ]
        for records in (self.topic, compacted):
            replayed = Subjects()
            for key, value in records:
                replayed.apply(decode(key, value))
            assert shown(replayed) == shown(self.registry.subjects)
            assert replayed.config("a") == self.registry.subjects.config("a")


TestRegistryAndModel = RegistryAndModel.TestCase
TestRegistryAndModel.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
