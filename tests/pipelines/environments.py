"""Machines that lack something: one without Java, and a Python that has everything but Headrace."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def path_without_java(directory: Path) -> str:
    """A PATH with all programs of this one, except Java's and Maven's."""
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).glob("*") if place else ():
            link = directory / program.name
            if not program.name.startswith(("java", "jdk", "mvn")) and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)


@contextmanager
def java_hidden(path: str) -> Iterator[None]:
    """No Java can be found in here by PATH, which is this one, nor by JAVA_HOME."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", path)
        environment.delenv("JAVA_HOME", raising=False)
        yield


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
