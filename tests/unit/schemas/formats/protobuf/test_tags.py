"""Tags of Protobuf's messages and fields."""

import pytest

from headrace.schemas.formats.protobuf.parser import parse_proto
from headrace.schemas.formats.protobuf.proto_file import ProtoFile
from headrace.schemas.formats.protobuf.tags import change_tags, tagged_entities
from headrace.schemas.formats.schema_format import FIELD, RECORD, InvalidSchema, TaggedEntity


@pytest.fixture
def file() -> ProtoFile:
    return parse_proto(
        'message M { int32 a = 1 [(confluent.field_meta).tags = "A", (confluent.field_meta).doc = "d"]; '
        "oneof o { int32 b = 2; } message N { int32 c = 3; } }"
    )


def test_tags_are_found(file: ProtoFile) -> None:
    assert list(tagged_entities(file)) == [TaggedEntity("M.a", FIELD, ("A",))]


def test_tags_are_added_and_removed_in_a_copy(file: ProtoFile) -> None:
    add = [
        TaggedEntity("M", RECORD, ("R",)),
        TaggedEntity("M.a", FIELD, ("A", "B")),
        TaggedEntity("M.o.b", FIELD, ("C",)),
        TaggedEntity("M.N.c", FIELD, ("D",)),
    ]
    changed = change_tags(file, add, [TaggedEntity("M.a", FIELD, ("A",))])
    assert set(tagged_entities(changed)) == {
        TaggedEntity("M", RECORD, ("R",)),
        TaggedEntity("M.b", FIELD, ("C",)),
        TaggedEntity("M.a", FIELD, ("B",)),
        TaggedEntity("M.N.c", FIELD, ("D",)),
    }
    assert len(list(tagged_entities(file))) == 1


def test_other_settings_of_the_option_stay(file: ProtoFile) -> None:
    changed = change_tags(file, [], [TaggedEntity("M.a", FIELD, ("A",))])
    (option,) = changed.messages[0].fields[0].options
    assert option.value == {"doc": "d"}


@pytest.mark.parametrize(("path", "kind"), [("M.z", FIELD), ("M", FIELD), ("N", RECORD)])
def test_a_path_that_leads_nowhere(file: ProtoFile, path: str, kind: str) -> None:
    with pytest.raises(InvalidSchema, match="No matching path"):
        change_tags(file, [TaggedEntity(path, kind, ("A",))], [])
