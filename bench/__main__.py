"""`python -m bench [NAME ...]`: Headrace beside Apache Kafka, all families of runs or some; or a benchmark of one part.

Without names, every family of runs beside Kafka is measured and docs/benchmarks is written anew. With names, only those:
families (`produce`, `consume`, ...) and the modules of this package that measure Headrace alone (`log`, `scale`, ...:
each has a `run() -> Report`). `--list` tells them all. Exit status 1 if a target is missed.
"""

import argparse
import compileall
import importlib
import json
import pkgutil
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import bench
import headrace
from bench.beside_kafka import catalogue
from bench.beside_kafka.machine import commands, machine
from bench.beside_kafka.picture import picture
from bench.beside_kafka.results import Results
from bench.beside_kafka.rounds import Size
from bench.beside_kafka.steady_memory import steady_memory
from bench.beside_kafka.table import as_json, table, verdicts
from bench.report import Report

QUICK_SHARE = 0.05
QUICK_BACKLOG_GB = 0.2


def alone() -> list[str]:
    """The benchmarks of one part of Headrace."""
    modules = (module.name for module in pkgutil.iter_modules(bench.__path__) if not module.ispkg)
    return sorted(name for name in modules if name not in ("__main__", "report"))


def main() -> int:
    # Asked to end, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    arguments = _parser().parse_args()
    families = catalogue.about()
    known = {**families, **dict.fromkeys(alone(), "")}
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; --list tells them", file=sys.stderr)
        return 2
    if arguments.list:
        _list(families)
        return 0
    missed = False
    for name in arguments.names:
        if name not in families:
            missed |= _run_alone(name, arguments.json)
    chosen = [name for name in families if name in arguments.names or not arguments.names]
    if chosen:
        missed |= _run_beside_kafka(chosen, arguments)
    return int(missed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    parser.add_argument("--json", type=Path, metavar="DIRECTORY", help="write the results there")
    parser.add_argument("--rounds", type=int, default=3, help="how often each server is measured")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to try the harness")
    parser.add_argument("--share", type=float, default=1.0, help="share of the full sizes")
    parser.add_argument("--backlog-gb", type=float, default=5.0, help="size of the backlog")
    parser.add_argument(
        "--servers", default=",".join(catalogue.SERVERS), help="only these, separated by commas"
    )
    return parser


def _list(families: dict[str, str]) -> None:
    print("beside Apache Kafka")
    for name, about in families.items():
        print(f"  {name:14} {about}")
    print("Headrace alone")
    for name in alone():
        about = (importlib.import_module(f"bench.{name}").__doc__ or "").splitlines()[0]
        print(f"  {name:14} {about}")


def _run_alone(name: str, directory: Path | None) -> bool:
    report: Report = importlib.import_module(f"bench.{name}").run()
    print(report.table())
    if directory is not None:
        _write(directory / f"{name}.json", report.as_json())
    return bool(report.missed)


def _run_beside_kafka(names: Sequence[str], arguments: argparse.Namespace) -> bool:
    # As pip does for whoever installs it; this checkout may never have been compiled (PYTHONDONTWRITEBYTECODE).
    compileall.compile_dir(headrace.__path__[0], quiet=1)
    quick: bool = arguments.quick
    size = Size(
        share=QUICK_SHARE if quick else arguments.share,
        backlog_gb=QUICK_BACKLOG_GB if quick else arguments.backlog_gb,
    )
    comparison = catalogue.comparison(
        names, rounds=arguments.rounds, size=size, servers=arguments.servers.split(",")
    )
    with nullcontext() if quick else steady_memory():
        results = comparison.run()
    print()
    print(table(results))
    for failure in comparison.failures:
        print(f"FAILED {failure}")
    is_whole = set(names) == set(catalogue.about()) and size == Size() and arguments.rounds >= 3
    directory: Path | None = arguments.json
    if directory is None and is_whole and not comparison.failures:
        directory = catalogue.RESULTS
    if directory is not None:
        _save(results, directory)
    return bool(comparison.failures) or any(
        not target.is_met(ratio) for target, cases in verdicts(results) for _, ratio in cases
    )


def _save(results: Results, directory: Path) -> None:
    described = machine()
    told = {"machine": described, "commands": commands(), **as_json(results)}
    _write(directory / "beside_kafka.json", told)
    caption = (
        f"ratios of medians, Headrace/Kafka at the right; {described['cores']} cores, "
        f"{described['memory_gb']} GB, Apache Kafka {described['apache_kafka']}, {described['date']}"
    )
    (directory / "beside_kafka.svg").write_text(picture(results, caption))


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
