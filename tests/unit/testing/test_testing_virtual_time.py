"""Clock, network and errands of simulations: time that is told, messages that go astray, coroutines without a loop."""

from random import Random

from headrace.testing.simulation.errands import Errand, Fail, Pause, Resume
from headrace.testing.virtual_clock import VirtualClock
from headrace.testing.virtual_network import NetworkWeather, VirtualNetwork


def test_what_is_due_happens_in_order_of_time_and_then_of_asking() -> None:
    clock = VirtualClock(1_000)
    heard: list[tuple[int, str]] = []
    for delay_ms, name in ((20, "c"), (10, "a"), (10, "b"), (15, "never")):
        timer = clock.after(delay_ms, lambda name=name: heard.append((clock.now_ms, name)))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    timer.call_off()
    while clock.step():
        pass
    assert heard == [(1_010, "a"), (1_010, "b"), (1_020, "c")]
    assert clock() == 1_020


def arrivals(weather: NetworkWeather, count: int = 1_000) -> list[int]:
    clock = VirtualClock()
    network = VirtualNetwork(clock, Random(7))
    network.weather = weather
    arrived: list[int] = []
    for number in range(count):
        network.send(1, 2, lambda number=number: arrived.append(number))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    while clock.step():
        pass
    return arrived


def test_weather() -> None:
    assert sorted(arrivals(NetworkWeather())) == list(range(1_000))
    assert arrivals(NetworkWeather(delay_ms=50)) != list(range(1_000)), "they overtake each other"
    assert 800 < len(arrivals(NetworkWeather(drop=0.1))) < 980
    doubled = arrivals(NetworkWeather(duplicate=0.1))
    assert set(doubled) == set(range(1_000))
    assert 1_020 < len(doubled) < 1_200
    assert arrivals(NetworkWeather(drop=0.3)) == arrivals(NetworkWeather(drop=0.3))


def test_a_second_copy_may_come_much_later() -> None:
    clock = VirtualClock()
    network = VirtualNetwork(clock, Random(7))
    network.weather = NetworkWeather(delay_ms=5, duplicate=1.0, slow_ms=1_000)
    arrived_ms: list[int] = []
    for _ in range(50):
        network.send(1, 2, lambda: arrived_ms.append(clock.now_ms))
    while clock.step():
        pass
    assert len(arrived_ms) == 100
    assert all(at_ms <= 5 for at_ms in arrived_ms[:50])
    assert 900 < arrived_ms[-1] <= 1_000


def test_a_cut_link_carries_nothing_one_way() -> None:
    clock = VirtualClock()
    network = VirtualNetwork(clock, Random(1))
    arrived: list[str] = []
    network.cut(1, 2)
    network.send(1, 2, lambda: arrived.append("there"))
    network.send(2, 1, lambda: arrived.append("back"))
    network.join(1, 2)
    network.send(1, 2, lambda: arrived.append("again"))
    while clock.step():
        pass
    assert sorted(arrived) == ["again", "back"]


def test_an_errand_goes_on_when_told_and_only_once() -> None:
    story: list[str] = []
    armed: list[tuple[Resume, Fail]] = []

    async def errand() -> None:
        story.append("start")
        await Pause(lambda resume, fail: armed.append((resume, fail)))
        story.append("on")
        try:
            await Pause(lambda resume, fail: armed.append((resume, fail)))
        except OSError as error:
            story.append(str(error))

    Errand(errand()).start()
    armed[0][0]()
    armed[0][0]()
    assert story == ["start", "on"]
    armed[1][1](OSError("broken"))
    armed[1][0]()
    assert story == ["start", "on", "broken"]


def test_a_stopped_errand_does_nothing_more() -> None:
    armed: list[Resume] = []
    story: list[str] = []

    async def work() -> None:
        await Pause(lambda resume, fail: armed.append(resume))
        story.append("too late")

    errand = Errand(work())
    errand.start()
    errand.stop()
    armed[0]()
    assert story == []
