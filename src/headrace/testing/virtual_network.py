"""A network that loses, delays, doubles and reorders, by chance from a seed, and that can be cut.

Carries calls, not bytes: a message is what to do at the other end. Whether the other end is there is not its business.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from headrace.testing.virtual_clock import Action, VirtualClock

Reply: TypeAlias = Callable[[object], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkWeather:
    """How bad it is. Chances are per message; `slow` ones, and those that come twice, take up to `slow_ms`."""

    delay_ms: int = 5
    drop: float = 0.0
    duplicate: float = 0.0
    slow: float = 0.0
    slow_ms: int = 0


FAIR_WEATHER = NetworkWeather()


class VirtualNetwork:
    """Links between numbered places, all up at first."""

    def __init__(self, clock: VirtualClock, chance: Random) -> None:
        self._clock = clock
        self._random = chance.random
        self._cuts: dict[tuple[int, int], None] = {}
        self.weather = FAIR_WEATHER
        self.sent = 0
        self.lost = 0

    def cut(self, source: int, target: int) -> None:
        """Nothing gets from one place to the other, one way."""
        self._cuts[source, target] = None

    def join(self, source: int, target: int) -> None:
        """The link is up again."""
        self._cuts.pop((source, target), None)

    def heal(self) -> None:
        """Every link is up, and the weather is fair."""
        self._cuts.clear()
        self.weather = FAIR_WEATHER

    def is_up(self, source: int, target: int) -> bool:
        """Whether messages get through, one way."""
        return (source, target) not in self._cuts

    def delay_ms(self) -> int:
        """How long a message takes."""
        weather = self.weather
        if weather.slow and self._random() < weather.slow:
            return 1 + int(self._random() * weather.slow_ms)
        return 1 + int(self._random() * weather.delay_ms)

    def send(self, source: int, target: int, arrive: Action) -> None:
        """Let `arrive` happen at the other end: once, twice or never."""
        self.sent += 1
        weather = self.weather
        if (source, target) in self._cuts or (weather.drop and self._random() < weather.drop):
            self.lost += 1
            return
        self._clock.after(self.delay_ms(), arrive)
        if weather.duplicate and self._random() < weather.duplicate:
            self._clock.after(
                1 + int(self._random() * max(weather.delay_ms, weather.slow_ms)), arrive
            )
