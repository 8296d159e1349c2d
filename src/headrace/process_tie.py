"""Program that becomes another program and leaves a watcher beside it, which ends that program when a pipe is closed.

    python process_tie.py PIPE PROGRAM ARGUMENT …

PIPE is the reading end; the writing end is held by one process alone, the owner. The operating system closes it when the owner
ends, whatever ended it and whichever of its threads started this: that is why it is a pipe and not Linux's parent death signal.
Started by `tied_process`. Imports next to nothing, because its start is part of every server's start.
"""

import os
import signal
import sys
import time

_GRACE_S = 20.0  # as long as a broker may take to hand over what it leads
_LOOK_AGAIN_S = 0.05


def main() -> None:
    """Leave the watcher, become the program."""
    pipe, program = int(sys.argv[1]), sys.argv[2:]
    program_id = os.getpid()  # stays the same when we become the program
    if os.fork() == 0:
        try:
            _watch(pipe, program_id)
        finally:
            os._exit(0)
    os.close(pipe)
    try:
        os.execvp(program[0], program)  # noqa: S606 (that is what it is for)
    except OSError as error:
        sys.exit(f"cannot run {program[0]}: {error.strerror}")


def _watch(pipe: int, program_id: int) -> None:
    """Wait for the owner's end, then end the program: it is our parent, so its number cannot be another program's meanwhile."""
    os.setsid()  # keys of the owner's terminal are not for us
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # whoever reads what the program writes must see its end
        os.dup2(nothing, number)
    while os.read(pipe, 1):
        pass
    deadline = time.monotonic() + _GRACE_S
    if os.getppid() == program_id:
        os.kill(program_id, signal.SIGTERM)
    while os.getppid() == program_id:
        if time.monotonic() > deadline:
            os.kill(program_id, signal.SIGKILL)
        time.sleep(_LOOK_AGAIN_S)


if __name__ == "__main__":
    main()
