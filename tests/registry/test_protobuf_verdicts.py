"""Protobuf's verdicts beside those of Confluent's own CompatibilityChecker, whose jars are of version 7.0."""

from headrace.registry.formats.protobuf import ProtobufFormat, ProtobufSchema
from tests.registry.confluent_checker import needs_jars, verdicts
from tests.registry.protobuf_corpus import SCHEMAS, pairs

# Rules that version 7.0 does not have, or does not apply to fields of a oneof.
NEWER = {
    "FIELD_NUMERIC_LABEL_CHANGED",
    "REQUIRED_FIELD_ADDED",
    "REQUIRED_FIELD_REMOVED",
}
ALSO_IN_ONEOFS = {"FIELD_KIND_CHANGED", "FIELD_SCALAR_KIND_CHANGED"}


@needs_jars
def test_nothing_is_allowed_that_confluents_checker_refuses() -> None:
    parsed: dict[str, ProtobufSchema] = {}
    for text in SCHEMAS:
        schema = ProtobufFormat().parse(text, {})
        assert isinstance(schema, ProtobufSchema)
        parsed[text] = schema
    asked = [{"level": "BACKWARD", "old": [old], "new": new} for old, new in pairs()]
    for (old, new), answer in zip(pairs(), verdicts("ProtobufVerdicts.java", asked), strict=True):
        kinds = {each.kind for each in parsed[new].can_read(parsed[old])}
        if answer["compatible"]:
            allowed = NEWER | (ALSO_IN_ONEOFS if "oneof" in old + new else set())
            assert kinds <= allowed, (old, new, kinds)
        else:
            assert kinds, (old, new, answer["messages"])
