"""Tags of Avro's records and fields."""

import json

import pytest

from headrace.schemas.formats.avro.parser import parse_avro
from headrace.schemas.formats.avro.tags import change_tags, tagged_entities
from headrace.schemas.formats.avro.types import Type
from headrace.schemas.formats.schema_format import FIELD, RECORD, InvalidSchema, TaggedEntity


@pytest.fixture
def root() -> Type:
    inner = {"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}]}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": ["null", "R"]}]
    return parse_avro(json.dumps({"type": "record", "name": "n.R", "fields": fields}), ())[0]


def test_tags_are_added_once_and_removed(root: Type) -> None:
    record, field = (
        TaggedEntity("n.R", RECORD, ("A", "B")),
        TaggedEntity("n.S.x", FIELD, ("PII",)),
    )
    change_tags(root, [record, field, record], [])
    assert list(tagged_entities(root)) == [record, field]
    change_tags(root, [], [TaggedEntity("n.R", RECORD, ("A",)), field])
    assert list(tagged_entities(root)) == [TaggedEntity("n.R", RECORD, ("B",))]


@pytest.mark.parametrize(("path", "kind"), [("n.R.c", FIELD), ("n.R", FIELD), ("R", RECORD)])
def test_a_path_that_leads_nowhere(root: Type, path: str, kind: str) -> None:
    with pytest.raises(InvalidSchema, match="No matching path"):
        change_tags(root, [TaggedEntity(path, kind, ("A",))], [])
    assert not list(tagged_entities(root))
