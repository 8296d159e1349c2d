"""The Spark of PySpark's wheel without the archive of its Python sources.

Spark puts that archive first on the path of every Python process it starts, and a query starts half a dozen of them, one after
the other. An archive holds no compiled modules, so each of them would compile PySpark anew. Seen from a directory that lacks it,
they import the installed PySpark, which is compiled: a query begins earlier.
"""

import os
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headrace.pipelines.spark.java import cache_directory

_SOURCES: Final = "python"  # the directory with the archive
_NEEDED: Final = ("bin", "jars")


def spark_home(master: str) -> str | None:
    """What SPARK_HOME should be for a session on this machine, or None where it is to be left alone.

    Others' Spark and others' Python are: only this Python is known to have this PySpark.
    """
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    if "SPARK_HOME" in os.environ or python != sys.executable or not master.startswith("local"):
        return None
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        return None
    package = Path(found.submodule_search_locations[0])
    if not _is_complete(package):
        return None
    try:
        return str(linked_home(package, cache_directory() / "spark"))
    except OSError:  # no place for links: it goes without them
        return None


def linked_home(package: Path, directory: Path) -> Path:
    """A directory with links to everything in the package but the archive; made aside and renamed. Raises OSError."""
    home = directory / f"{zlib.crc32(bytes(package)):08x}"
    if _is_complete(home):
        return home
    aside = directory / f"{home.name}.{os.getpid()}"
    aside.mkdir(parents=True)
    for entry in package.iterdir():
        if entry.is_dir() and entry.name not in (_SOURCES, "__pycache__"):
            (aside / entry.name).symlink_to(entry)
    try:
        aside.rename(home)
    except OSError:  # it is there: somebody else was faster, or somebody removed a part of it
        for link in aside.iterdir():
            link.unlink()
        aside.rmdir()
        if not _is_complete(home):
            raise
    return home


def _is_complete(home: Path) -> bool:
    return all((home / part).is_dir() for part in _NEEDED)
