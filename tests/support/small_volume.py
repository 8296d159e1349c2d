"""A file system of a few megabytes that a test may fill: a tmpfs, which only root may mount."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.tools import require_all


@contextmanager
def small_volume(path: Path, *, size_bytes: int) -> Iterator[Path]:
    """Mount it at `path`. Skips the test where mounting is not allowed, which is a failure for root in CI."""
    path.mkdir(parents=True, exist_ok=True)
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount the small volume that this test fills")
    command = [mount, "-t", "tmpfs", "-o", f"size={size_bytes}", "headrace-test", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        reason = f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}"
        if require_all():
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    try:
        yield path
    finally:
        # Lazily: a broker that a failed test left behind must not keep the mount for ever.
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(volume: Path) -> None:
    """Take the last byte, by a file `filler`."""
    with (volume / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
