"""`headrace pipeline COMMAND`: writes, checks, runs and stops data pipelines on Spark."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.cli.command_line import FAILED, OK, Failure, ToolParser, run_tool
from headrace.cli.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.pipelines.run_state import RunState
    from headrace.pipelines.runner import RunOptions

T = TypeVar("T")

_COMMANDS: Final = {
    "init": "write a pipeline that works, to start from",
    "validate": "check a pipeline's file",
    "run": "run a pipeline: on and on, or with --available-now until all there is now is done",
    "list": "list the pipelines that were run here",
    "status": "show how a pipeline goes",
    "stop": "stop a running pipeline between two batches",
    "redrive": "send dead letters back to the topics they came from",
}
DEFAULT_BROKER: Final = "localhost:9092"


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    name = arguments[0] if arguments else ""
    if name not in _COMMANDS:
        wrong = name and name not in ("-h", "--help")
        if wrong:
            print(f"headrace pipeline: there is no command '{name}'", file=sys.stderr)
        print(
            "usage: headrace pipeline COMMAND [options]", file=sys.stderr if wrong else sys.stdout
        )
        for command, text in _COMMANDS.items():
            print(f"  {command:<10} {text}", file=sys.stderr if wrong else sys.stdout)
        return FAILED if wrong or not name else OK
    parser = ToolParser(f"pipeline {name}", _COMMANDS[name])
    work: Callable[[argparse.Namespace], int] = {
        "init": _init,
        "validate": _validate,
        "run": _run,
        "list": _list,
        "status": _status,
        "stop": _stop,
        "redrive": _redrive,
    }[name]
    _OPTIONS[name](parser)
    if name == "list" and len(arguments) == 1:
        return run_tool(parser, ["--output", "text"], work)
    return run_tool(parser, arguments[1:], work)


def add_servers_option(parser: ToolParser) -> None:
    """The brokers: from the command line, else from the environment, else this machine's."""
    parser.value(
        "bootstrap-server",
        "the brokers to connect to first (HEADRACE_BOOTSTRAP_SERVERS)",
        default=os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", DEFAULT_BROKER),
    )


def _add_state_option(parser: ToolParser) -> None:
    parser.value(
        "state-dir", "where pipelines keep checkpoints and logs (HEADRACE_STATE_DIR)", metavar="DIR"
    )


def _add_run_options(parser: ToolParser) -> None:
    parser.add_argument("file", help="the pipeline: a Python file")
    parser.value("name", "the pipeline's name (default: the file's)")
    add_servers_option(parser)
    parser.value("master", "Spark's master: local[*], spark://host:port, …", default="local[*]")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark"
    )
    _add_state_option(parser)


def _validate_options(parser: ToolParser) -> None:
    _add_run_options(parser)
    parser.flag("quick", "check names and options only, without starting Spark")


def _run_options(parser: ToolParser) -> None:
    _add_run_options(parser)
    parser.flag("available-now", "read what is there now, then end")
    parser.value("progress-interval", "seconds between reports", type=float, default=5.0)
    parser.flag("json", "report as JSON, one document a line")


def _init_options(parser: ToolParser) -> None:
    parser.add_argument("file", help="the file to write")


def _list_options(parser: ToolParser) -> None:
    _add_state_option(parser)
    add_output_option(parser)


def _status_options(parser: ToolParser) -> None:
    parser.add_argument("name", help="the pipeline's name")
    _list_options(parser)


def _stop_options(parser: ToolParser) -> None:
    parser.add_argument("name", help="the pipeline's name")
    parser.value("timeout", "seconds to wait for it", type=float, default=60.0)
    _add_state_option(parser)


def _redrive_options(parser: ToolParser) -> None:
    parser.add_argument("topic", help="the topic with the dead letters")
    add_servers_option(parser)
    parser.value("max-attempts", "leave letters that were tried this often", type=int)
    parser.flag("dry-run", "only count them")


_OPTIONS: Final[dict[str, Callable[[ToolParser], None]]] = {
    "init": _init_options,
    "validate": _validate_options,
    "run": _run_options,
    "list": _list_options,
    "status": _status_options,
    "stop": _stop_options,
    "redrive": _redrive_options,
}


def _state_directory(options: argparse.Namespace) -> Path:
    from headrace.pipelines.run_state import default_directory

    return Path(options.state_dir) if options.state_dir else default_directory()


def _init(options: argparse.Namespace) -> int:
    from headrace.pipelines.starter import STARTER

    path = Path(options.file)
    if path.exists():
        raise Failure(f"{path} is there already", hint="choose another name, or remove it")
    path.write_text(STARTER, encoding="utf-8")
    print(f"wrote {path}; its first lines say how to run it")
    return OK


def _options_of_run(options: argparse.Namespace) -> "RunOptions":
    from headrace.pipelines.run_state import RunState
    from headrace.pipelines.runner import RunOptions
    from headrace.pipelines.spark_session import require_spark

    require_spark()
    path = Path(options.file)
    settings = {}
    for setting in options.conf:
        name, equals, value = setting.partition("=")
        if not equals:
            raise Failure(f"--conf {setting}: a setting is NAME=VALUE")
        settings[name] = value
    return RunOptions(
        path=path,
        state=RunState.of(_state_directory(options), options.name or path.stem),
        bootstrap_servers=options.bootstrap_server,
        master=options.master,
        available_now=getattr(options, "available_now", False),
        as_json=getattr(options, "json", False),
        progress_s=getattr(options, "progress_interval", 5.0),
        settings=settings,
    )


def _validate(options: argparse.Namespace) -> int:
    from headrace.pipelines.runner import validate

    found = _in_words(lambda: validate(_options_of_run(options), with_spark=not options.quick))
    for kind, names in (("source", found.sources), ("view", found.views), ("flow", found.flows)):
        for name in names:
            print(f"{kind:<7} {name}")
    print("valid")
    return OK


def _run(options: argparse.Namespace) -> int:
    from headrace.pipelines.runner import run as run_pipeline

    def say(text: str) -> None:
        print(text, flush=True)

    settings = _options_of_run(options)
    outcome = _in_words(lambda: run_pipeline(settings, say=say))
    print(f"{settings.state.name}: {outcome}")
    return OK


def _in_words(work: Callable[[], T]) -> T:
    """What Spark has to complain about, in its first line; the rest is in its log."""
    from pyspark.errors import PySparkException

    try:
        return work()
    except PySparkException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        ours = [line for line in lines if line.startswith("headrace.")]
        raise Failure((ours or lines or ["Spark failed"])[-1 if ours else 0]) from error


def _list(options: argparse.Namespace) -> int:
    from headrace.pipelines.run_state import known

    found = known(_state_directory(options))
    if wants_json(options):
        print_json([_about(each) for each in found])
        return OK
    for each in found:
        print(f"{each.name:<30} {each.outcome():<10} {each.run().get('file', '')}")
    return OK


def _status(options: argparse.Namespace) -> int:
    from headrace.pipelines.progress_report import report_line
    from headrace.pipelines.run_state import RunState

    state = RunState.of(_state_directory(options), options.name)
    if not state.run():
        raise Failure(f"no pipeline {options.name} was run with {_state_directory(options)}")
    if wants_json(options):
        print_json(_about(state))
        return OK
    about = state.run()
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(about.get("started_s", 0)))
    print(f"{state.name}: {state.outcome()}, started {started}, log {state.log_file}")
    progress = state.progress()
    for name, report in progress.get("flows", {}).items():
        print(report_line(name, report))
    for topic, count in progress.get("dead_letters", {}).items():
        print(f"{topic}: {count:,} dead letters")
    return OK


def _about(state: "RunState") -> dict[str, object]:
    return {
        "name": state.name,
        "state": state.outcome(),
        "pid": state.running_pid(),
        "directory": str(state.directory),
        "log": str(state.log_file),
        **{name: value for name, value in state.run().items() if name not in ("pid", "born")},
        **state.progress(),
    }


def _stop(options: argparse.Namespace) -> int:
    from headrace.pipelines.run_state import RunState

    state = RunState.of(_state_directory(options), options.name)
    if not state.stop(options.timeout):
        raise Failure(f"{options.name} did not stop within {options.timeout:g} s")
    print(f"{options.name}: {state.outcome()}")
    return OK


def _redrive(options: argparse.Namespace) -> int:
    from headrace.pipelines.redrive import redrive

    found = redrive(
        options.bootstrap_server,
        options.topic,
        max_attempts=options.max_attempts,
        dry_run=options.dry_run,
    )
    word = "would be sent back" if options.dry_run else "sent back"
    for topic, count in sorted(found.sent.items()):
        print(f"{topic}: {count:,} {word}")
    if found.given_up:
        print(f"{found.given_up:,} left, because they were tried too often")
    if found.foreign:
        print(f"{found.foreign:,} left, because they do not say where they come from")
    if not (found.sent or found.given_up or found.foreign):
        print("nothing to send back")
    return OK
