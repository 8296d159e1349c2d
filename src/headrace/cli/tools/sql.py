"""`headrace sql "select … from topic(orders)"`: a query over stored records, printed as a table."""

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.cli.shell.command_line import OK, Failure, ToolParser, UsageError, run_tool, tell
from headrace.cli.shell.output import add_output_option, print_json, wants_json
from headrace.cli.shell.spark_options import add_master_option, add_servers_option


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    parser = ToolParser(
        "sql",
        "Query stored records with Spark SQL: topic(NAME) stands for the records of a topic,"
        " with the columns key, value, topic, partition, offset, timestamp, and the fields of values that are"
        " JSON or have schemas of a registry.",
    )
    parser.usage = "headrace sql QUERY [options]"
    parser.add_argument("query", metavar="QUERY", help="the query; - reads it from standard input")
    add_servers_option(parser)
    add_master_option(parser)
    parser.value(
        "schema-registry",
        "the schema registry to ask for the schemas of keys and values"
        " (HEADRACE_SCHEMA_REGISTRY; else http://localhost:8081, if one is there)",
        default=os.environ.get("HEADRACE_SCHEMA_REGISTRY"),
        metavar="URL",
    )
    parser.value(
        "max-rows",
        "print at most this many rows (default: 1000)",
        type=int,
        default=1000,
        metavar="N",
    )
    add_output_option(parser)
    return run_tool(parser, arguments, _query)


def _query(options: argparse.Namespace) -> int:
    text = _text(options.query)
    from headrace.pipelines.runs.run_state import default_directory
    from headrace.pipelines.spark_session import require_spark, start_session

    require_spark()
    from pyspark.errors import PySparkException

    from headrace.pipelines.spark.errors import first_words, java_told
    from headrace.pipelines.topic_sql import answer, json_value, question, text_table

    asked = question(
        text,
        bootstrap_servers=options.bootstrap_server,
        registry_url=options.schema_registry,
    )
    log_file = default_directory() / "sql.log"
    spark = start_session("headrace-sql", master=options.master, log_file=log_file)
    with _interruptible():
        try:
            with java_told():
                frame = answer(spark, asked)
                rows = frame.limit(options.max_rows + 1).collect()
        except PySparkException as error:
            words = first_words(str(error))
            hint = f"Spark's log is {log_file}"
            if "TABLE_OR_VIEW_NOT_FOUND" in words:
                hint = "the records of a topic are topic(NAME)"
            raise Failure(words, hint=hint) from error
        finally:
            spark.stop()
    covered = list(asked.views.values())
    shown = rows[: options.max_rows]
    if wants_json(options):
        print_json(
            {
                "rows": [json_value(row) for row in shown],
                "covered": [{"topic": each.topic, "ranges": list(each.ranges)} for each in covered],
            }
        )
    else:
        print(text_table(frame.columns, [list(row) for row in shown]))
        for each in covered:
            tell(str(each))
        if len(rows) > len(shown):
            tell(f"only the first {len(shown)} rows are shown (--max-rows)")
    return OK


@contextmanager
def _interruptible() -> Iterator[None]:
    """Spark takes Ctrl-C for itself when it starts, and asks Java in the middle of another answer, which breaks both."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _text(given: str) -> str:
    import sys

    text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise UsageError("the query is empty")
    return text
