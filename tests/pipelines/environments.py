"""Machines that lack something: one without Java, and a Python that has everything but Headrace."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path


def path_without_java(directory: Path) -> str:
    """A PATH with all programs of this one, except Java's and Maven's."""
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).glob("*") if place else ():
            link = directory / program.name
            if not program.name.startswith(("java", "jdk", "mvn")) and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)


def python_without_headrace(directory: Path) -> dict[str, str]:
    """The environment for a Python of Spark's that knows all packages but the one under test.

    It leaves out `site`, and with it the file that leads to the sources of an editable installation; an installed Headrace is
    hidden by links to everything else.
    """
    packages = directory / "packages"
    packages.mkdir()
    for package in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not package.name.startswith(("headrace", "pyspark_headrace")):
            (packages / package.name).symlink_to(package)
    python = directory / "python"
    python.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{packages}"\n'
        f'exec "{sys.executable}" -S "$@"\n'
    )
    python.chmod(0o755)
    return {"PYSPARK_PYTHON": str(python)}
