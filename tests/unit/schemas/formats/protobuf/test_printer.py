"""`.proto` files in Confluent's layout."""

from headrace.schemas.formats.protobuf.parser import parse_proto
from headrace.schemas.formats.protobuf.printer import print_proto

# As Confluent's registry prints it, to the letter.
WHOLE = """\
syntax = "proto3";
package p;

import "x.proto";
import public "y.proto";

option java_package = "j";

message M {
  reserved 2, 4 to 5, 9 to max;
  reserved "old";

  option deprecated = true;

  int32 a = 1 [deprecated = true];
  map<string, N> b = 3 [
    (x) = "q\\"",
    (y).z = {
      k: 1,
      l: [
        "m",
        "n"
      ]
    }
  ];

  oneof o {
    int32 c = 6;
  }

  message N {}
  enum E {
    A = 0;
    B = 1 [deprecated = true];
  }
}

extend Q {
  int32 d = 100;
}

service S {
  rpc R (stream M) returns (N);
  rpc T (M) returns (stream N) {
    option deprecated = true;
  };
}
"""


def test_the_layout() -> None:
    assert print_proto(parse_proto(" ".join(WHOLE.split()))) == WHOLE


def test_a_blank_line_of_an_inner_block_is_indented() -> None:
    text = print_proto(parse_proto("message M { message N { int32 a = 1; message O {} } }"))
    assert "    int32 a = 1;\n  \n    message O {}\n" in text


def test_an_empty_file() -> None:
    assert not print_proto(parse_proto(""))
