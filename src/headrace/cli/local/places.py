"""Where the `headrace` command and the data of this user's servers are on this machine."""

import os
import shutil
import sys
from pathlib import Path


def command_name() -> str:
    """How this program is called from here: `headrace` where that is on PATH, else by its place."""
    beside = Path(sys.executable).parent / "headrace"
    if shutil.which("headrace") or not beside.exists():
        return "headrace"
    near = os.path.relpath(beside)
    return str(beside) if near.startswith("..") else near


def default_data_directory() -> str:
    """Where a broker keeps its data if nobody says so: where this user's programs keep theirs."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "headrace", "data")
