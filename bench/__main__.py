"""`python -m bench [NAME ...] [--json DIRECTORY]`: runs the named benchmarks, or all of them.

A benchmark is a module of this package with a `run() -> Report`; its docstring's first line is what `--list` shows.
Exit status 1 if one misses a target.
"""

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path

import bench
from bench.report import Report


def names() -> list[str]:
    """Every benchmark there is."""
    modules = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return sorted(name for name in modules if name not in ("__main__", "report"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *names()])
    parser.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    parser.add_argument("--json", type=Path, metavar="DIRECTORY", help="write NAME.json there too")
    arguments = parser.parse_args()
    chosen = arguments.names or names()
    missed = False
    for name in chosen:
        module = importlib.import_module(f"bench.{name}")
        if arguments.list:
            print(f"{name:12} {(module.__doc__ or '').splitlines()[0]}")
            continue
        report: Report = module.run()
        print(report.table())
        missed |= bool(report.missed)
        if arguments.json is not None:
            arguments.json.mkdir(parents=True, exist_ok=True)
            path = arguments.json / f"{name}.json"
            path.write_text(json.dumps(report.as_json(), indent=2) + "\n")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
