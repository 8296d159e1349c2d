"""Child processes that end when the process that started them ends, whatever ended it: an exit, a signal, `kill -9`. A rim module.

`TiedProcess` is a `Popen` for any program: see `process_tie` for how. `end_with_owner` is for a program of ours that holds the
reading end of such a pipe as its standard input.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from headrace import process_tie

_Stream = int | IO[bytes] | None


class TiedProcess(subprocess.Popen[bytes]):
    """A child in a session of its own. It gets SIGTERM when this object or this process is gone, and SIGKILL some time later."""

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        stdin: _Stream = subprocess.DEVNULL,
        stdout: _Stream = None,
        stderr: _Stream = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        watched, held = os.pipe()  # neither is inherited by other children
        self._tie = os.fdopen(held, "wb", buffering=0)
        try:
            super().__init__(
                [sys.executable, "-I", "-S", process_tie.__file__, str(watched), *words],
                pass_fds=(watched,),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException:
            self._tie.close()
            raise
        finally:
            os.close(watched)

    def poll(self) -> int | None:
        code = super().poll()
        if code is not None:
            self._tie.close()
        return code

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        self._tie.close()
        return code


def end_with_owner() -> None:
    """End this process at once when its standard input ends. Nothing else may read standard input from now on."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="end-with-owner", daemon=True).start()
