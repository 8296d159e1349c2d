"""`.proto` files without what users add to Protobuf."""

from headrace.schemas.formats.protobuf.extensions import without_custom_options, without_extensions
from headrace.schemas.formats.protobuf.parser import parse_proto
from headrace.schemas.formats.protobuf.printer import print_proto

TEXT = (
    "option (own) = 1; option java_package = 'j'; message M { extensions 100 to 199; option (own) = 1; "
    "int32 a = 1 [(own) = 1, deprecated = true, (confluent.field_meta).doc = 'd']; oneof o { int32 b = 2 [(own) = 1]; } "
    "extend M { int32 c = 100 [(own) = 1]; } message N { extensions 5; } } enum E { A = 0 [(own) = 1]; } "
    "extend M { int32 d = 101; } service S { rpc R (M) returns (M) { option (own) = 1; } }"
)


def test_options_of_users_are_left_out() -> None:
    text = print_proto(without_custom_options(parse_proto(TEXT)))
    assert "own" not in text
    for word in ("java_package", "deprecated", "confluent.field_meta", "extensions 100", "int32 d"):
        assert word in text


def test_extensions_are_left_out() -> None:
    text = print_proto(without_extensions(parse_proto(TEXT)))
    for word in ("own", "extend", "extensions"):
        assert word not in text
    for word in ("int32 a", "int32 b", "message N", "service S"):
        assert word in text
