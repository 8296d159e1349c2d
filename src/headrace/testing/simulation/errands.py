"""Coroutines without an event loop: production code that awaits only a store runs on virtual time.

A coroutine suspends by awaiting a `Pause`; whoever runs the errand is handed the pause's `arm`, and arranges for the errand
to go on or to fail, at most once. Nothing happens by itself.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeAlias

Resume: TypeAlias = Callable[[], None]
Fail: TypeAlias = Callable[[Exception], None]
Step: TypeAlias = Callable[[], "Arm"]
Arm: TypeAlias = Callable[[Resume, Fail], None]


class Pause:
    """Awaited: the errand stands still until `arm`'s resume or fail is called."""

    __slots__ = ("_arm",)

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    def __await__(self) -> Generator[Arm, None, None]:
        yield self._arm


class Errand:
    """One coroutine on its way."""

    __slots__ = ("_coroutine", "_is_over")

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._is_over = False

    def start(self) -> None:
        """Run up to the first pause."""
        self._go(lambda: self._coroutine.send(None))

    def stop(self) -> None:
        """Never go on: its broker is dead."""
        if not self._is_over:
            self._is_over = True
            self._coroutine.close()

    def _go(self, step: Step) -> None:
        if self._is_over:
            return
        try:
            arm = step()
        except StopIteration:
            self._is_over = True
            return
        used = False

        def once(action: Step) -> None:
            nonlocal used
            if not used:
                used = True
                self._go(action)

        arm(
            lambda: once(lambda: self._coroutine.send(None)),
            lambda error: once(lambda: self._coroutine.throw(error)),
        )
