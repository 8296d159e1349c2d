"""`headrace doctor`: looks at this machine line by line, and says what is missing and what to do about it."""

import argparse
from typing import Final

from headrace.cli.shell.command_line import FAILED, OK, ToolParser, run_tool
from headrace.cli.shell.output import add_output_option, print_json, wants_json

_MARKS: Final = {"ok": "ok  ", "note": "note", "failed": "FAIL"}


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code: 1 where something that is needed is not there."""
    return run_tool(_parser(), arguments, _work, needs_options=False)


def _parser() -> ToolParser:
    parser = ToolParser("doctor", "Check this machine and its set-up, line by line.")
    parser.value(
        "bootstrap-server",
        "brokers that must answer; without it, it is only told who answers on port 9092",
        metavar="SERVERS",
    )
    parser.flag("all", "need everything: also what clusters and pipelines want (Java, Spark)")
    parser.value("data-dir", "where a broker's data shall be", metavar="DIR")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    from headrace.cli.local.doctor_checks import Wishes, findings
    from headrace.cli.local.places import default_data_directory

    wishes = Wishes(
        data_directory=options.data_dir or default_data_directory(),
        bootstrap_servers=options.bootstrap_server,
        needs_everything=options.all,
    )
    found = []
    for finding in findings(wishes):
        found.append(finding)
        if not wants_json(options):
            print(f"{_MARKS[finding.verdict]}  {finding.subject:<16} {finding.text}", flush=True)
            if finding.hint:
                print(f"{'':<24}try: {finding.hint}")
    failures = sum(finding.verdict == "failed" for finding in found)
    if wants_json(options):
        print_json(
            [
                {
                    "check": finding.subject,
                    "verdict": finding.verdict,
                    "text": finding.text,
                    "try": finding.hint or None,
                }
                for finding in found
            ]
        )
    elif failures:
        print(f"\n{failures} of {len(found)} checks failed")
    else:
        print("\nall that is needed is there")
    return FAILED if failures else OK
