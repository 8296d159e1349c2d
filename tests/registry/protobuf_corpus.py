"""Protobuf schemas of which each is compared with every other one, for comparing our verdicts with Confluent's."""

_BODIES = (
    "",
    "message M { }",
    "message M { int32 a = 1; }",
    "message M { int64 a = 1; }",
    "message M { sint32 a = 1; }",
    "message M { fixed32 a = 1; }",
    "message M { sfixed32 a = 1; }",
    "message M { fixed64 a = 1; }",
    "message M { bool a = 1; }",
    "message M { float a = 1; }",
    "message M { double a = 1; }",
    "message M { string a = 1; }",
    "message M { bytes a = 1; }",
    "message M { repeated int32 a = 1; }",
    "message M { repeated string a = 1; }",
    "message M { int32 b = 1; }",
    "message M { int32 a = 1; string b = 2; }",
    "message M { oneof o { int32 a = 1; } }",
    "message M { oneof o { int32 a = 1; string b = 2; } }",
    "message M { oneof o { int32 a = 1; string c = 3; } string b = 2; }",
    "message M { oneof other { int32 a = 1; string b = 2; } }",
    "message M { E a = 1; } enum E { X = 0; }",
    "message M { E a = 1; } enum E { X = 0; Y = 1; }",
    "message M { N a = 1; } message N { int32 x = 1; }",
    "message M { N a = 1; } message N { string x = 1; }",
    "message M { O a = 1; } message O { int32 x = 1; }",
    "message M { message N { int32 x = 1; } N a = 1; }",
    "message M { repeated N a = 1; } message N { int32 x = 1; }",
    "message M { map<string, int32> a = 1; }",
    "message M { map<string, int64> a = 1; }",
    "message M { map<string, string> a = 1; }",
    "message M { M a = 1; int32 b = 2; }",
    "message M { optional int32 a = 1; }",
    "message M { N a = 1; } message N { O o = 1; } message O { int32 z = 1; }",
    "message M { N a = 1; } message N { O o = 1; } message O { string z = 1; }",
    "message M { oneof o { int32 a = 1; } oneof p { string b = 2; } }",
    "message M { oneof o { int32 a = 1; string b = 2; int32 c = 4; } }",
    "message M { int32 a = 1; string b = 2; oneof q { int32 d = 5; } }",
    "message M { oneof o { int32 d = 5; } }",
    "message M { oneof o { string a = 1; } }",
    "message M { map<string, N> a = 1; } message N { int32 x = 1; }",
    "message M { map<string, N> a = 1; } message N { string x = 1; }",
    "message M { map<int32, int32> a = 1; }",
    "message M { repeated AEntry a = 1; message AEntry { string key = 1; int32 value = 2; } }",
    "message M { message N { int32 x = 1; message P {} } N a = 1; }",
    "message M { message N { string x = 1; } N a = 1; N b = 2; }",
    "message M { int32 a = 1; message N {} }",
    "message Z {} message M { int32 a = 1; }",
    "enum E { X = 0; } message M { int32 a = 1; }",
    "message M { enum E { X = 0; } E a = 1; }",
    "message M { enum E { X = 0; } repeated E a = 1; }",
    "message M { repeated double a = 1; }",
    "message M { repeated bytes a = 1; }",
    "message M { optional string a = 1; }",
    "message M { M m = 1; string s = 2; }",
    "message M { M m = 1; int32 s = 2; }",
    "message M { A a = 1; } message A { B b = 1; } message B { A a = 1; int32 x = 2; }",
    "message M { A a = 1; } message A { B b = 1; } message B { A a = 1; string x = 2; }",
    "message M { B a = 1; } message A { B b = 1; } message B { A a = 1; int32 x = 2; }",
)
_PROTO2 = (
    "message M { optional int32 a = 1; }",
    "message M { required int32 a = 1; }",
    "message M { optional int32 a = 1; required int32 b = 2; }",
    "message M { }",
    "message M { repeated int32 a = 1; }",
    "message M { optional group A = 1 { optional int32 x = 2; } }",
    "message M { required string a = 1; }",
    "message M { optional string a = 1; }",
    "message M { oneof o { int32 a = 1; } }",
    "message M { extensions 5 to 10; } extend M { optional int32 e = 5; }",
)
SCHEMAS = (
    *(f'syntax = "proto3";\npackage p;\n{body}' for body in _BODIES),
    'syntax = "proto3";\npackage q;\nmessage M { int32 a = 1; }',
    *(f'syntax = "proto2";\npackage p;\n{body}' for body in _PROTO2),
    'syntax = "proto3";\npackage p.q;\nmessage M { int32 a = 1; }',
    'syntax = "proto3";\nmessage M { int32 a = 1; }',
)


# Schemas of which the texts are compared, by what is special about them.
TEXTS = {
    "empty": (
        'syntax = "proto3";'
    ),
    "no syntax": (
        'message M { optional string a = 1; }'
    ),
    "comments": (
        '// leading\nsyntax = "proto3"; /* block */\npackage a.b.c;\n// about M\nmessage M {\n  // about a\n  string a = 1; // trailing\n  /* detached */\n\n  /* about b\n   * more */\n  int32 b = 2;\n}\n// end\n'
    ),
    "scalars": (
        'syntax="proto3";message M{double f1 = 1; float f2 = 2; int32 f3 = 3; int64 f4 = 4; uint32 f5 = 5; uint64 f6 = 6; sint32 f7 = 7; sint64 f8 = 8; fixed32 f9 = 9; fixed64 f10 = 10; sfixed32 f11 = 11; sfixed64 f12 = 12; bool f13 = 13; string f14 = 14; bytes f15 = 15;}'
    ),
    "labels": (
        'syntax = "proto3"; message M { optional int32 a = 1; repeated string b = 2; int32 c_d = 3 [json_name = "x", deprecated = true]; repeated int32 p = 4 [packed = false]; }'
    ),
    "nested": (
        'syntax = "proto3"; message A { message B { message C { int32 x = 1; } C c = 1; enum E { Z = 0; } E e = 2; } B b = 1; B.C bc = 2; A.B.E e = 3; .A self = 4; enum F { Y = 0; } F f = 5; } enum G { X = 0; }  message H {}'
    ),
    "maps": (
        'syntax = "proto3"; message M { map<string, int32> a = 1; map < int32 , N > b = 2 [deprecated=true]; message N { map<bool, .M.N> c = 1; } }'
    ),
    "oneof": (
        'syntax = "proto3"; message M { int32 z = 9; oneof o { int32 a = 1; string b = 2 [deprecated = true]; N n = 3; } string y = 4; oneof p { option (foo) = 1; bool c = 5; } message N {} } import "google/protobuf/descriptor.proto"; extend google.protobuf.OneofOptions { int32 foo = 50000; }'
    ),
    "enum": (
        'syntax = "proto3"; enum E { option allow_alias = true; A = 0; B = 1 [deprecated = true]; C = 1; D = -1; F = 0x10; reserved 5, 7 to 9, 20 to max; reserved "X", "Y"; }'
    ),
    "reserved": (
        'syntax = "proto3"; message M { reserved 2, 15, 9 to 11, 1000 to max; reserved "foo", "bar"; int32 a = 1; }'
    ),
    "extensions": (
        'syntax = "proto2"; message M { extensions 100 to 199, 300; extensions 1000 to max; optional int32 a = 1; extend M { optional int32 inner = 101; } } extend M { optional string e = 100; repeated int32 r = 102; } extend M { optional int32 z = 103; }'
    ),
    "service": (
        'syntax = "proto3"; package p; message A {} message B {} service S { option deprecated = true; rpc Get (A) returns (B); rpc Put(stream A) returns (stream .p.B) { option deprecated = true; option idempotency_level = IDEMPOTENT; } rpc X (A) returns (B) {} ; }'
    ),
    "custom options": (
        'syntax = "proto3"; package p; import "google/protobuf/descriptor.proto";\nmessage Opt { string a = 1; repeated int32 b = 2; Opt c = 3; map<string,string> m = 4; bool f = 5; E e = 6; }\nenum E { Q = 0; W = 1; }\nextend google.protobuf.FileOptions { Opt file_opt = 50001; string file_s = 50002; }\nextend google.protobuf.MessageOptions { Opt msg_opt = 50001; bool flag = 50002; double dbl = 50003; }\nextend google.protobuf.FieldOptions { Opt fld_opt = 50001; string fs = 50002; repeated string many = 50003;}\nextend google.protobuf.EnumOptions { string es = 50001; }\nextend google.protobuf.EnumValueOptions { int32 ev = 50001; }\nextend google.protobuf.ServiceOptions { Opt so = 50001; }\nextend google.protobuf.MethodOptions { Opt mo = 50001; }\noption (file_s) = "hi";\noption (file_opt) = { a: "x" b: [1,2,3] c { a: \'y\' b: 4 } f: true e: W };\nmessage M { option (flag) = true; option (msg_opt).a = "z"; option (msg_opt).c.a = "deep"; option (p.dbl) = -1.5e3;\n string x = 1 [(fs) = "t", (fld_opt).a = "u", (fld_opt).b = 7, (many) = "1", (many) = "2"];\n int32 y = 2 [(fld_opt) = {a: "q", c: {b: 1}, m: {key: "k", value: "v"}}, deprecated=true]; }\nenum F { option (es) = "e"; A = 0 [(ev) = 3]; }\nservice S { option (so) = {a: "s"}; rpc R(M) returns (M) { option (mo).a = "m"; } }\n'
    ),
    "Confluent's options": (
        'syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto"; package p;\noption (confluent.file_meta) = { doc: "file", params: [{key:"k", value:"v"}], tags: ["a"] };\nmessage M { option (confluent.message_meta).doc = "hello"; confluent.type.Decimal d = 1 [(confluent.field_meta) = { params: [ {value:"8",key:"precision"}, {value:"3",key:"scale"} ] }]; string s = 2 [(confluent.field_meta).tags = "PII", (confluent.field_meta).tags = "X"]; }\n'
    ),
    "group": (
        'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 2; } repeated group H = 3 { required string b = 4; } }'
    ),
    "order": (
        'syntax = "proto3"; enum E1 { A1 = 0; } message M1 { E1 e = 1; } service S1 { rpc R(M1) returns (M1); } message M2 {} enum E2 { A2 = 0; }'
    ),
    "white space": (
        '   syntax   =   "proto3"  ;\n\n\n package   p ;  message   M{int32   a=1;string\nb\n=\n2\n;}'
    ),
    "strings": (
        'syntax = "proto3"; option java_package = "a" "b" \'c\'; message M { string a = 1 [json_name = "\\u00e9\\t\\x41\'"]; }'
    ),
    "several options": (
        'syntax = "proto3"; message M { option deprecated = true; option no_standard_descriptor_accessor = false; int32 b = 2; int32 a = 1; }'
    ),
    "empty statements": (
        'syntax = "proto3";;; message M { ; int32 a = 1;; } ; enum E { A = 0;; }'
    ),
    "an extended option": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions { optional string o = 50000; } message M { int32 a = 1 [(o) = "x"]; }'
    ),
    "a default of a string": (
        'syntax = "proto2"; message M { optional string b = 2 [default = "x\\"y\\n\\\\z"]; }'
    ),
    "defaults of numbers": (
        'syntax = "proto2"; message M { repeated int64 c = 3 [packed=true]; optional double d = 5 [default = 1.5, deprecated = true]; optional float inf = 6 [default = inf]; optional float nan = 7 [default=nan]; optional int32 neg = 8 [default = -5];  optional bool bo = 10 [default=false]; optional uint64 hex = 11 [default = 0xFF]; optional float ninf = 12 [default = -inf]; optional double e = 13 [default = 1e10]; }'
    ),
    "a default of an enum": (
        'syntax = "proto2"; message M { optional E e = 4 [default = B]; enum E { A = 0; B = 1; } }'
    ),
    "a repeated option": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; extend google.protobuf.MessageOptions { repeated string xs = 50000; } message M { option (xs) = "a"; option (xs) = "b"; }'
    ),
    "repeated names in an option": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; message O { repeated string s = 1; repeated O o = 2; } extend google.protobuf.MessageOptions { O x = 50000; } message M { option (x) = { s: "a" s: "b" o { s: "c" } o { s: ["d","e"] } o: [] }; }'
    ),
    "unicode": (
        'syntax = "proto3"; option java_package = "käse→"; message M { string a = 1 [json_name = "ü"]; }'
    ),
    "semicolons in an option": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; message O { string s = 1; int32 i=2;} extend google.protobuf.MessageOptions { O x = 50000; } message M { option (x) = { s: "a"; i: 1; }; }'
    ),
    "methods with blocks": (
        'syntax = "proto3"; message A {} service S { rpc G(A) returns (A) { } rpc H(A) returns (A) { option deprecated = true; }; option deprecated = false; }'
    ),
    "a group in a oneof": (
        'syntax = "proto2"; message M { oneof o { int32 a = 1; group G = 2 { optional int32 x = 3; } } }'
    ),
    "a message set": (
        'syntax = "proto2"; message M { option message_set_wire_format = true; extensions 4 to max; }'
    ),
    "maps of messages": (
        'syntax = "proto3"; package a.b; message M { map<string, a.b.M> m = 1; map<string, .a.b.M> n = 2; map<string, M> o = 3; map<int32, google.protobuf.Timestamp> p = 4;} import "google/protobuf/timestamp.proto";'
    ),
    "optional fields": (
        'syntax = "proto3"; message M { optional string s = 1; optional M m = 2; }'
    ),
    "options of an extension": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions { string a = 50000 [retention = RETENTION_SOURCE, targets = TARGET_TYPE_FIELD, targets = TARGET_TYPE_FILE]; }'
    ),
    "oneofs out of order": (
        'syntax = "proto3"; message M { oneof z { int32 c = 5; int32 b = 3; } oneof y { int32 a = 1; } }'
    ),
    "a comment at the end": (
        'syntax = "proto3"; message M { int32 a = 1; } // no newline'
    ),
    "quotes of reserved names": (
        'syntax = "proto3"; message M { reserved \'a\', "b"; reserved 5 to 5; }'
    ),
    "options of an enum": (
        'syntax = "proto3"; enum E { option allow_alias = true; option deprecated = true; A = 0; B = 0 [deprecated = true, debug_redact = false]; }'
    ),
    "imports": (
        'syntax = "proto3";\nimport "google/protobuf/timestamp.proto";\nimport public "google/protobuf/any.proto";\nimport "google/protobuf/empty.proto";\nimport "google/protobuf/duration.proto";\npackage p;\noption java_package = "com.x";\noption java_outer_classname = \'Out\';\noption java_multiple_files = true;\noption optimize_for = SPEED;\noption go_package="x/y;z";\nmessage M { google.protobuf.Timestamp t = 1; .google.protobuf.Any a = 2; google.protobuf.Duration d = 3; google.protobuf.Empty e=4;}\n'
    ),
    "options of options": (
        'syntax = "proto2"; import "google/protobuf/descriptor.proto"; package q; message O { extensions 100 to 200; optional int32 z = 1; } extend O { optional int32 e = 100; } extend google.protobuf.MessageOptions { optional O x = 50000; } message M { option (x) = { [q.e]: 5 z: 3 }; }'
    ),
    "merged options": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; message O { string s = 1; O o = 2; repeated int32 r = 3; } extend google.protobuf.MessageOptions { O x = 50000; } message M { option (x).s = "a"; option (x).o.s = "b"; option (x).o.r = 1; option (x).o.r = 2; option (x).r = 7; }'
    ),
    "numbers": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; extend google.protobuf.MessageOptions { double d = 50000; int64 i = 50002; uint64 u = 50003; } message C { option (i) = -0x10; } message D { option (u) = 18446744073709551615; } message E { option (d) = 1; } message H { option (d) = -inf; } message I { option (d) = 2.5e3; } message J { option (i) = 010; } message K { option (d) = 0.125; }'
    ),
    "an unknown import": (
        'syntax = "proto3"; import "unknown/x.proto"; message M { int32 a = 1 [(unknown.opt) = "x"]; }'
    ),
    "maps as messages": (
        'syntax = "proto3"; message M { repeated AEntry a = 1; message AEntry { option map_entry = true; string key = 1; int32 value = 2; } }'
    ),
    "tags without their import": (
        'syntax = "proto3"; message M { int32 a = 1 [(confluent.field_meta) = { tags: ["PII"] }]; }'
    ),
}  # fmt: skip
