"""`headrace pipeline COMMAND`: writes, checks, runs and stops data pipelines on Spark."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.cli.shell.command_line import FAILED, OK, Failure, ToolParser, nearest, run_tool
from headrace.cli.shell.output import add_output_option, print_json, wants_json
from headrace.cli.shell.spark_options import (
    add_master_option,
    add_registry_option,
    add_servers_option,
)

if TYPE_CHECKING:
    from headrace.pipelines.runs.run_state import RunState
    from headrace.pipelines.runs.runner import RunOptions

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
_OPERANDS: Final = {
    **dict.fromkeys(("init", "validate", "run"), "FILE "),
    **dict.fromkeys(("status", "stop"), "NAME "),
    "redrive": "TOPIC ",
    "list": "",
}


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
    about = _COMMANDS[name]
    parser = ToolParser(f"pipeline {name}", f"{about[0].upper()}{about[1:]}.")
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
    parser.usage = f"headrace pipeline {name} {_OPERANDS[name]}[options]"
    return run_tool(parser, arguments[1:], work, needs_options=name != "list")


def _add_state_option(parser: ToolParser) -> None:
    parser.value(
        "state-dir", "where pipelines keep checkpoints and logs (HEADRACE_STATE_DIR)", metavar="DIR"
    )


def _add_run_options(parser: ToolParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the pipeline: a Python file")
    parser.value("name", "the pipeline's name (default: the file's)")
    add_servers_option(parser)
    add_registry_option(parser)
    add_master_option(parser)
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
    parser.value(
        "progress-interval",
        "seconds between reports (default: 5)",
        type=float,
        default=5.0,
        metavar="S",
    )
    parser.flag("json", "report as JSON, one document a line")


def _init_options(parser: ToolParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write")


def _list_options(parser: ToolParser) -> None:
    _add_state_option(parser)
    add_output_option(parser)


def _status_options(parser: ToolParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the pipeline's name")
    _list_options(parser)


def _stop_options(parser: ToolParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the pipeline's name")
    parser.value(
        "timeout", "seconds to wait for it (default: 60)", type=float, default=60.0, metavar="S"
    )
    _add_state_option(parser)


def _redrive_options(parser: ToolParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the topic with the dead letters")
    add_servers_option(parser)
    parser.value("max-attempts", "leave letters that were tried this often", type=int, metavar="N")
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
    from headrace.pipelines.runs.run_state import default_directory

    return Path(options.state_dir) if options.state_dir else default_directory()


def _init(options: argparse.Namespace) -> int:
    from headrace.pipelines.definitions.starter import STARTER

    path = Path(options.file)
    if path.exists():
        raise Failure(f"{path} is there already", hint="choose another name, or remove it")
    try:
        path.write_text(STARTER, encoding="utf-8")
    except OSError as error:
        raise Failure(
            f"cannot write {path}",
            why=error.strerror or str(error),
            hint="choose a place that is there and writable",
        ) from error
    print(f"wrote {path}; its first lines say how to run it")
    return OK


def _options_of_run(options: argparse.Namespace) -> "RunOptions":
    from headrace.pipelines.runs.run_state import RunState
    from headrace.pipelines.runs.runner import RunOptions
    from headrace.pipelines.spark_session import require_spark

    require_spark()
    path = Path(options.file)
    if not path.exists():
        raise Failure(
            f"there is no file {path}",
            hint=f"'headrace pipeline init {path}' writes one that works",
        )
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
        schema_registry=options.schema_registry,
        master=options.master,
        available_now=getattr(options, "available_now", False),
        as_json=getattr(options, "json", False),
        progress_s=getattr(options, "progress_interval", 5.0),
        settings=settings,
    )


def _validate(options: argparse.Namespace) -> int:
    from headrace.pipelines.runs.runner import validate

    found = _in_words(lambda: validate(_options_of_run(options), with_spark=not options.quick))
    for kind, names in (("source", found.sources), ("view", found.views), ("flow", found.flows)):
        for name in names:
            print(f"{kind:<7} {name}")
    print("valid")
    return OK


def _run(options: argparse.Namespace) -> int:
    from headrace.pipelines.runs.runner import run as run_pipeline

    def say(text: str) -> None:
        print(text, flush=True)

    settings = _options_of_run(options)
    try:
        outcome = _in_words(lambda: run_pipeline(settings, say=say))
    except KeyboardInterrupt:
        print(f"{settings.state.name}: stopped", flush=True)
        raise
    print(f"{settings.state.name}: {outcome}")
    return OK


def _in_words(work: Callable[[], T]) -> T:
    """What Spark has to complain about, in a line; the rest is in its log."""
    from pyspark.errors import PySparkException

    from headrace.pipelines.spark.errors import first_words

    try:
        return work()
    except PySparkException as error:
        raise Failure(first_words(str(error))) from error


def _list(options: argparse.Namespace) -> int:
    from headrace.pipelines.runs.run_state import known

    found = known(_state_directory(options))
    if wants_json(options):
        print_json([_about(each) for each in found])
        return OK
    for each in found:
        print(f"{each.name:<30} {each.outcome():<10} {each.run().get('file', '')}")
    return OK


def _status(options: argparse.Namespace) -> int:
    from headrace.pipelines.runs.progress_report import report_line
    from headrace.pipelines.runs.run_state import RunState

    state = RunState.of(_state_directory(options), options.name)
    if not state.run():
        raise Failure(
            f"no pipeline {options.name} was run with {_state_directory(options)}",
            hint=_names(_state_directory(options), options.name),
        )
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
    from headrace.pipelines.runs.run_state import RunState

    state = RunState.of(_state_directory(options), options.name)
    if state.running_pid() is None:
        raise Failure(
            f"pipeline {options.name} does not run",
            why=f"it is {state.outcome()}",
            hint=_names(_state_directory(options), options.name),
        )
    if not state.stop(options.timeout):
        raise Failure(
            f"{options.name} did not stop within {options.timeout:g} s",
            why="it waits for a batch to end",
            hint=f"wait longer with --timeout, or end process {state.running_pid()}",
        )
    print(f"{options.name}: {state.outcome()}")
    return OK


def _names(directory: Path, wanted: str) -> str:
    """What to try instead of a name that is not there."""
    from headrace.pipelines.runs.run_state import known

    names = [each.name for each in known(directory) if each.name != wanted]
    return nearest(wanted, names) or "'headrace pipeline list' shows what was run here"


def _require_topic(options: argparse.Namespace) -> None:
    from headrace.client.admin.admin import Admin
    from headrace.client.admin.topics import list_topics

    with Admin(options.bootstrap_server) as admin:
        names = [each.name for each in list_topics(admin)]
    if options.topic not in names:
        hint = nearest(options.topic, names) or "'headrace topics --list' shows what there is"
        raise Failure(f"there is no topic {options.topic}", hint=hint)


def _redrive(options: argparse.Namespace) -> int:
    from headrace.pipelines.redrive import redrive

    _require_topic(options)
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
    if found.copies:
        print(f"{found.copies:,} left, because they are copies of letters that were sent back")
    if not (found.sent or found.given_up or found.foreign or found.copies):
        print("nothing to send back")
    return OK
