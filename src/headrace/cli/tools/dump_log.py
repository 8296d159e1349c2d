"""`headrace dump-log`: print segment, index and snapshot files. Kafka's `kafka-dump-log`.

It reads files and changes nothing: a broker may be running on them.
"""

from __future__ import annotations

import argparse
import os

from headrace.cli.shell.command_line import (
    OK,
    Failure,
    ToolParser,
    require_option,
    run_tool,
    tell,
    was_given,
)

LEFT_OUT = (
    "cluster-metadata-decoder",
    "share-group-state-decoder",
    "remote-log-metadata-decoder",
)
STRING_DECODER = "StringDecoder"
ALL_BYTES = 2**31 - 1


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("dump-log", "Print segment, index and snapshot files.")
    parser.value("files", "the files, separated by commas (required)", metavar="LIST")
    parser.flag("print-data-log", "print keys and values")
    parser.flag("deep-iteration", "print every record, not only batches")
    parser.flag("verify-index-only", "only compare an index with its log")
    parser.flag("index-sanity-check", "only check that an index can be used")
    parser.flag("skip-record-metadata", "print only keys and values")
    parser.value("max-message-size", "bytes of the largest message", type=int, metavar="BYTES")
    parser.value(
        "max-bytes", "read only so much of a log", type=int, default=ALL_BYTES, metavar="BYTES"
    )
    for part in ("key", "value"):
        parser.value(
            f"{part}-decoder-class",
            f"how to read {part}s: StringDecoder (default), IntegerDecoder, LongDecoder, DefaultDecoder",
            nargs="?",
            const=STRING_DECODER,
            metavar="CLASS",
        )
    parser.flag("offsets-decoder", "read records of __consumer_offsets")
    parser.flag("transaction-log-decoder", "read records of __transaction_state")
    parser.hidden(*LEFT_OUT, action="store_true")
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "files")
    for decoder in LEFT_OUT:
        if was_given(options, decoder):
            raise Failure(
                f"--{decoder} is not available",
                why="Headrace has no such topic",
                hint="--print-data-log prints keys and values as text or bytes",
            )
    from headrace.cli.dump.index_dump import IndexDump
    from headrace.cli.dump.segment_dump import SegmentDump

    segments, indexes = SegmentDump(options), IndexDump(options)
    dumps = {
        ".log": segments.dump,
        ".index": indexes.dump_offset_index,
        ".timeindex": indexes.dump_time_index,
        ".txnindex": indexes.dump_txn_index,
        ".snapshot": indexes.dump_snapshot,
    }
    for path in (part.strip() for part in options.files.split(",")):
        if not path:
            continue
        print(f"Dumping {path}")
        dump = dumps.get(os.path.splitext(path)[1])
        if dump is None:
            tell(f"Ignoring unknown file {path}")
            continue
        try:
            os.stat(path)  # rather than a remark on the name of a file that is not there
            dump(path)
        except OSError as error:
            raise Failure(
                f"cannot read {error.filename or path}", why=error.strerror or ""
            ) from error
    indexes.tell_mismatches()
    segments.tell_gaps()
    return OK
