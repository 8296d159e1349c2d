"""Several registries that all may believe to be the primary, in any interleaving: no acknowledged registration is lost."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.registry.compatibility import Level
from headrace.registry.judging.judge import Judgement
from headrace.registry.rules.decisions import Registry
from headrace.registry.rules.submitted import SubmittedSchema
from headrace.registry.state.claims import Claims, Headers, claim_header, new_claim_header
from headrace.registry.state.names import SubjectName
from headrace.registry.state.records import Entry, NoopKey, decode, encode_key, encode_value
from headrace.registry.state.subjects import Subjects

INSTANCES = st.integers(0, 2)
SUBJECTS = st.sampled_from(["a", "b"])
TEXTS = st.sampled_from([f'"{kind}"' for kind in ("int", "long", "string", "bytes", "float")])


@dataclass
class Record:
    offset: int
    key: bytes
    value: bytes | None
    headers: Headers


@dataclass
class Replica:
    """What one instance knows, and what it waits for."""

    claims: Claims = field(default_factory=Claims)
    registry: Registry = field(
        default_factory=lambda: Registry(Subjects(), default_level=Level.NONE)
    )
    position: int = 0
    claim: int | None = None
    claiming: int | None = None  # the offset of a claim that has not been read back
    repeating: set[int] | None = None
    pending: tuple[set[int], tuple[str, str, int, int]] | None = None
    refused: set[int] = field(default_factory=set)

    def take(self, record: Record) -> None:
        self.position = record.offset + 1
        if self.claims.accept(record.offset, record.key, record.headers):
            self.registry.subjects.apply(decode(record.key, record.value))
        else:
            self.refused.add(record.offset)
        if self.claim is not None and self.claims.newest != self.claim:
            self.claim = None


class Registries(RuleBasedStateMachine):
    """The log of `_schemas`, three instances, and the registrations that were acknowledged."""

    @initialize()
    def begin(self) -> None:
        self.log: list[Record] = []
        self.end = 0
        self.compactable = 0
        self.replicas = [Replica() for _ in range(3)]
        self.acknowledged: list[tuple[str, str, int, int]] = []
        self.deleted: set[str] = set()  # subjects that were deleted at some time

    def append(self, entries: Any, headers: Headers) -> set[int]:
        offsets = set()
        for entry in entries:
            key, value = encode_key(entry.key), encode_value(entry.value)
            self.log.append(Record(self.end, key, value, headers))
            offsets.add(self.end)
            self.end += 1
        return offsets

    @rule(instance=INSTANCES)
    def claim(self, instance: int) -> None:
        replica = self.replicas[instance]
        if replica.claim is None and replica.claiming is None and replica.repeating is None:
            header = new_claim_header(str(instance))
            (replica.claiming,) = self.append([Entry(NoopKey(), None)], [header])

    @rule(instance=INSTANCES, subject=SUBJECTS, text=TEXTS)
    def register(self, instance: int, subject: str, text: str) -> None:
        replica = self.replicas[instance]
        if replica.claim is None or replica.pending is not None:
            return
        judgement = Judgement(text=text)
        decided = replica.registry.registration.register(
            SubjectName(".", subject), SubmittedSchema(schema=text), judgement, force=False
        )
        told = (subject, text, decided.answer.version.schema_id, decided.answer.number)
        if decided.entries:
            offsets = self.append(decided.entries, [claim_header(replica.claim)])
            replica.pending = (offsets, told)
        else:
            self.acknowledged.append(told)

    @rule(instance=INSTANCES, subject=SUBJECTS)
    def delete(self, instance: int, subject: str) -> None:
        """Softly, so that what was acknowledged stays to be found; nobody waits for it."""
        replica = self.replicas[instance]
        living = replica.registry.subjects.versions(subject)
        if replica.claim is not None and replica.pending is None and living:
            name = SubjectName(".", subject)
            self.deleted.add(subject)
            decided = replica.registry.deletion.delete_subject(name, permanent=False)
            self.append(decided.entries, [claim_header(replica.claim)])
            # One write at a time: the next one is decided when this one was read.
            self.read(instance, len(self.log))

    @rule(instance=INSTANCES, count=st.integers(1, 5))
    def read(self, instance: int, count: int) -> None:
        replica = self.replicas[instance]
        for record in [each for each in self.log if each.offset >= replica.position][:count]:
            replica.take(record)
        self.settle(replica)

    def settle(self, replica: Replica) -> None:
        """What an instance does once it has read its own records back."""
        if replica.pending is not None and max(replica.pending[0]) < replica.position:
            offsets, told = replica.pending
            replica.pending = None
            if replica.refused.isdisjoint(offsets):
                self.acknowledged.append(told)
        if replica.claiming is not None and replica.claiming < replica.position:
            claim, replica.claiming = replica.claiming, None
            if replica.claims.newest == claim:
                repeated = [
                    entry
                    for key in replica.claims.keys_to_repeat
                    for entry in replica.registry.current(decode(key, None).key)
                ]
                replica.claim = claim
                replica.repeating = self.append(repeated, [claim_header(claim)])
        if replica.repeating is not None and max(replica.repeating, default=0) < replica.position:
            # The log is compacted an hour after it was written: by then, somebody has become the primary.
            if replica.claim is not None and replica.refused.isdisjoint(replica.repeating):
                self.compactable = max(self.compactable, replica.claim + 1)
            replica.repeating = None

    @rule()
    def compact(self) -> None:
        newest = {each.key: each.offset for each in self.log if each.offset < self.compactable}
        self.log = [
            each
            for each in self.log
            if each.offset >= self.compactable or newest[each.key] == each.offset
        ]

    @rule(instance=INSTANCES)
    def restart(self, instance: int) -> None:
        self.replicas[instance] = Replica()

    @invariant()
    def nothing_is_lost(self) -> None:
        fresh = Replica()
        for record in getattr(self, "log", ()):
            fresh.take(record)
        subjects = fresh.registry.subjects
        ids: dict[int, str] = {}
        for subject in ("a", "b"):
            versions = subjects.versions(subject, deleted=True)
            # A deleted version is forgotten when its schema is registered again.
            if subject not in getattr(self, "deleted", ()):
                assert list(versions) == list(range(1, len(versions) + 1))
            for version in versions.values():
                text = subjects.schema_of(subject, version).text
                assert ids.setdefault(version.schema_id, text) == text
        for subject, text, schema_id, number in getattr(self, "acknowledged", ()):
            versions = subjects.versions(subject, deleted=True)
            if number not in versions and subject in self.deleted:
                number = max(each for each in versions if versions[each].schema_id == schema_id)
            assert versions[number].schema_id == schema_id
            assert subjects.schema_of(subject, versions[number]).text == text

    @invariant()
    def all_know_the_same_when_all_is_read(self) -> None:
        if not hasattr(self, "log"):
            return
        fresh = Replica()
        for record in self.log:
            fresh.take(record)
        for replica in self.replicas:
            if replica.position == self.end:
                for subject in ("a", "b"):
                    known = replica.registry.subjects.versions(subject, deleted=True)
                    assert known == fresh.registry.subjects.versions(subject, deleted=True)


TestRegistries = Registries.TestCase
TestRegistries.settings = settings(
    max_examples=40,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
