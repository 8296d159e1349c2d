"""One compaction job in a process of its own, seen from the broker: starts the process, reads its reports, ends it.

Every failure of the process raises `CleanerFailed` and fails this compaction only.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from headrace.broker.upkeep.cleaner_process import CleanerOrder, CleanerReport
from headrace.errors import HeadraceError

# A report names every segment that it replaces, and there may be thousands of small ones.
_LONGEST_LINE_BYTES: Final = 16 * 1024 * 1024


class CleanerFailed(HeadraceError):
    """The process could not be started, or did not do its work."""


async def run_in_process(order: CleanerOrder) -> AsyncGenerator[CleanerReport]:
    """The reports of a new process, up to its last one. Close the iterator to end the process."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headrace.broker.upkeep.cleaner_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE_BYTES,
        )
    except OSError as error:
        raise CleanerFailed(f"the cleaner process cannot be started: {error}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # Standard input stays open: when it ends, with the broker, the process does.
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        async for line in process.stdout:
            yield msgspec.json.decode(line, type=CleanerReport)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise CleanerFailed(f"the cleaner process cannot be understood: {error}") from error
    finally:
        if process.returncode is None:
            try:
                process.kill()
            except ProcessLookupError:
                pass
            await process.wait()
