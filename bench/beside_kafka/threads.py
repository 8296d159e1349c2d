"""Several clients at once."""

import threading
from collections.abc import Callable


def at_once(*works: Callable[[], None]) -> None:
    """Run these in threads; the first failure is raised when all have ended."""
    failed: list[Exception] = []

    def attempt(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that measures
            failed.append(error)

    threads = [threading.Thread(target=attempt, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
