"""Versions of a subject: their order and counts whatever the order of changes; same schemas are found as by a walk."""

import sys
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.registry.judging.judge import Judgement
from headrace.registry.rules.lookup import Lookup
from headrace.registry.rules.submitted import SubmittedSchema
from headrace.registry.state.metadata import Metadata, RuleSet
from headrace.registry.state.names import parse_subject
from headrace.registry.state.records import Entry, Reference, SchemaKey, SchemaValue
from headrace.registry.state.subject_versions import SubjectVersions, Version
from headrace.registry.state.subjects import Schema, Subjects
from tests.unit.registry.world import World

_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 6), st.booleans(), st.booleans()),
        st.tuples(st.just("remove"), st.integers(1, 6), st.just(False), st.just(False)),
        st.tuples(st.just("delete up to"), st.integers(1, 6), st.just(False), st.just(False)),
    )
)


@given(_CHANGES)
def test_order_and_counts_follow_every_change(changes: list[tuple[str, int, bool, bool]]) -> None:
    versions = SubjectVersions()
    known: dict[int, Version] = {}
    for what, number, is_deleted, has_references in changes:
        if what == "put":
            versions.put(number, Version(1, is_deleted, None, has_references))
            known[number] = Version(1, is_deleted, None, has_references)
        elif what == "remove":
            assert versions.remove(number) == known.pop(number, None)
        else:
            versions.delete_up_to(number)
            for each, version in known.items():
                version.is_deleted |= each <= number
        living = {each: known[each] for each in sorted(known) if not known[each].is_deleted}
        assert list(versions.items(deleted=True).items()) == sorted(known.items())
        assert list(versions.items(deleted=False).items()) == list(living.items())
        assert versions.has_any(deleted=True) is bool(known)
        assert versions.has_any(deleted=False) is bool(living)
        assert versions.highest == max(known, default=0)
        assert versions.latest == max(living, default=None)
        assert list(versions.deleted) == [
            (each, known[each]) for each in sorted(known) if known[each].is_deleted
        ]
        assert list(versions.referring) == [
            (each, known[each]) for each in sorted(known) if known[each].has_references
        ]
        for each in range(1, 7):
            assert versions.get(each, deleted=True) == known.get(each)
            assert versions.get(each, deleted=False) == living.get(each)


_METADATA = (
    None,
    Metadata(),
    Metadata(properties={"a": "b"}),
    Metadata(properties={"confluent:version": "1"}),
    Metadata(properties={"confluent:version": "2"}),
    Metadata(properties={"confluent:version": "2", "a": "b"}),
    Metadata(properties={"confluent:version": "x"}),
)
_SCHEMAS = st.builds(
    Schema,
    schema_type=st.sampled_from(("AVRO", "JSON")),
    text=st.sampled_from(('"int"', '"long"')),
    references=st.sampled_from(((), (Reference("n", "a", 1),))),
    metadata=st.sampled_from(_METADATA),
    rule_set=st.sampled_from((None, RuleSet(), RuleSet(enable_at="ALL"))),
)
_RECORDS = st.lists(
    st.tuples(
        st.sampled_from(("a", "b", ":.c:a")),
        st.integers(1, 4),
        st.one_of(st.none(), st.tuples(st.integers(1, 6), st.booleans(), _SCHEMAS)),
    ),
    max_size=25,
)


def _apply(subjects: Subjects, subject: str, number: int, content: object) -> None:
    value = None
    if isinstance(content, tuple):
        schema_id, is_deleted, schema = content
        value = SchemaValue(
            subject=subject,
            version=number,
            id=schema_id,
            schema_type=schema.schema_type,
            references=schema.references,
            metadata=schema.metadata,
            rule_set=schema.rule_set,
            schema=schema.text,
            deleted=is_deleted,
        )
    subjects.apply(Entry(SchemaKey(subject=subject, version=number), value))


def _same_by_a_walk(
    subjects: Subjects, subject: str, schema: Schema, *, deleted: bool
) -> int | None:
    """What `Lookup.same_schema` finds, by comparing with every version."""
    versions = subjects.versions(subject, deleted=deleted)
    context = parse_subject(subject).context
    stored = {
        number: subjects.schema(context, version.schema_id) for number, version in versions.items()
    }
    schema_id = subjects.id_of(context, schema)
    for number in reversed(versions):
        if schema_id is not None and versions[number].schema_id == schema_id:
            return number
    for number in reversed(versions):
        known = stored[number]
        assert known is not None
        if (known.schema_type, known.text, known.references, known.rule_set) != (
            schema.schema_type,
            schema.text,
            schema.references,
            schema.rule_set,
        ):
            continue
        if known.metadata == schema.metadata or _differ_in_version(
            known.metadata, schema.metadata, number
        ):
            return number
    return None


def _differ_in_version(known: Metadata | None, wanted: Metadata | None, number: int) -> bool:
    versions = [None if each is None else each.confluent_version for each in (known, wanted)]
    if (versions[0] is None) == (versions[1] is None) or versions[1] not in (None, number):
        return False
    without = []
    for each in (known, wanted):
        properties = dict((each.properties if each else None) or {})
        properties.pop("confluent:version", None)
        without.append((properties, (each.tags if each else None)))
    return without[0] == without[1]


@given(_RECORDS, _SCHEMAS, st.booleans())
def test_the_same_schema_is_found_as_by_a_walk(
    records: list[tuple[str, int, object]],
    schema: Schema,
    deleted: bool,
) -> None:
    subjects = Subjects()
    for each in records:
        _apply(subjects, *each)
    for subject in ("a", "b", ":.c:a"):
        found = Lookup(subjects).same_schema(subject, schema, deleted=deleted)
        expected = _same_by_a_walk(subjects, subject, schema, deleted=deleted)
        assert (None if found is None else found.number) == expected


@given(_RECORDS)
def test_a_digest_is_known_as_long_as_a_schema_has_it(
    records: list[tuple[str, int, object]],
) -> None:
    subjects = Subjects()
    for each in records:
        _apply(subjects, *each)
        for context in (".", ".c"):
            for schema_id in range(1, 7):
                schema = subjects.schema(context, schema_id)
                if schema is not None:
                    assert context in dict(subjects.ids_by_digest(schema.digest))
    for subject, number in {(subject, number) for subject, number, _ in records}:
        _apply(subjects, subject, number, None)
    assert subjects.version_count == 0
    for schema in (each[2][2] for each in records if isinstance(each[2], tuple)):
        assert subjects.ids_by_digest(schema.digest) == []
        assert subjects.similar_ids(".", schema) == subjects.similar_ids(".c", schema) == []


def _calls_of_a_registration(world: World, number: int) -> int:
    """How many functions are called, of Python and of C, to register one more version."""
    subject, text = parse_subject("s"), f'{{"type":"fixed","name":"F{number}","size":1}}'
    wanted, judgement = SubmittedSchema(schema=text), Judgement(text=text)
    registration = world.registry.registration
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        if registration.may_exist(subject, wanted):
            registration.lookup_question(subject, wanted, normalize=False)
            assert registration.existing(subject, wanted, judgement) is None
        registration.question(subject, wanted, normalize=False, force=False)
        decision = registration.register(subject, wanted, judgement, force=False)
    finally:
        sys.setprofile(before)
    world.apply(decision)
    return calls


@pytest.mark.parametrize("level", ["NONE", "BACKWARD"])
def test_a_registration_costs_the_same_however_many_versions_there_are(level: str) -> None:
    world = World()
    world.configure(None, compatibility_level=level)
    calls = [_calls_of_a_registration(world, number) for number in range(400)]
    assert calls[399] <= calls[5] + 5
