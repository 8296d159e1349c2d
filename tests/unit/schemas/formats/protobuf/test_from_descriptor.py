"""`.proto` files made from descriptors, as Python's clients send them."""

import base64
import importlib

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace.schemas.formats.protobuf.from_descriptor import as_maps, proto_from_descriptor
from headrace.schemas.formats.protobuf.language import ProtobufFormat
from headrace.schemas.formats.protobuf.printer import print_proto


def descriptor(text: str) -> FileDescriptorProto:
    serialized = ProtobufFormat().parse(text, {}).formatted("serialized")
    return FileDescriptorProto.FromString(base64.b64decode(serialized))


def rewritten(text: str) -> str:
    return print_proto(as_maps(proto_from_descriptor(descriptor(text))))


def test_a_file_keeps_its_meaning() -> None:
    text = (
        'syntax = "proto3"; package p; option java_package = "j"; message M { reserved 9, 11 to 12; reserved "old"; '
        "optional int32 a = 1; repeated E b = 2; map<string, N> c = 3; oneof o { string d = 4; N e = 5; } "
        "message N { int64 x = 1 [deprecated = true]; } enum E { option allow_alias = true; A = 0; B = 0; } } "
        "service S { rpc R (stream M) returns (M); }"
    )
    parse = ProtobufFormat().parse
    assert parse(rewritten(text), {}).formatted("serialized") == parse(text, {}).formatted(
        "serialized"
    )


def test_labels_and_defaults_of_proto2() -> None:
    text = (
        'syntax = "proto2"; message M { required int32 a = 1; optional string b = 2 [default = "x"]; '
        "optional E c = 3 [default = B]; enum E { A = 0; B = 1; } extensions 100 to 199; } "
        "extend M { optional int32 d = 100; }"
    )
    found = rewritten(text)
    for line in (
        "required int32 a = 1",
        'default = "x"',
        "default = B",
        "extensions 100 to 199;",
        "extend .M",
    ):
        assert line in found


def test_maps_stay_messages_unless_they_are_asked_for() -> None:
    file = proto_from_descriptor(
        descriptor('syntax = "proto3"; message M { map<string, int32> a = 1; }')
    )
    assert "option map_entry = true;" in print_proto(file)
    assert "map<string, int32> a = 1" in print_proto(as_maps(file))
    assert "map_entry" not in print_proto(as_maps(file))


def test_confluents_options_are_known() -> None:
    # Whether or not the process knows their extensions.
    importlib.import_module("confluent_kafka.schema_registry.confluent.meta_pb2")
    found = rewritten(
        'syntax = "proto3"; import "confluent/meta.proto"; message M { string a = 1 '
        '[(confluent.field_meta) = { doc: "d" tags: ["PII", "X"] }]; }'
    )
    for word in ("(confluent.field_meta)", 'doc: "d"', '"PII"', '"X"'):
        assert word in found
