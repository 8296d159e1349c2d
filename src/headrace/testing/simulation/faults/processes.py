"""Processes and machines that die, stand still, or are restarted; clocks that jump."""

from typing import Final

from headrace.testing.simulation.broker import Condition, SimulatedBroker
from headrace.testing.simulation.faults.act import Act
from headrace.testing.virtual.scheduler import MILLISECOND_US

_MAX_CLOCK_JUMP_MS: Final = 5_000


def kill(act: Act) -> None:
    """The process dies; what it wrote stays."""
    if act.survival.may_die(act.target, loses=False):
        act.tell(f"{act.target.name} is killed")
        _die(act, act.target)


def lose_power(act: Act) -> None:
    """The machine dies; what was not synced goes."""
    loses = not act.around.plan.syncs_every_append
    if act.survival.may_die(act.target, loses=loses):
        act.tell(f"{act.target.name} loses power")
        act.around.died(act.target, has_lost=loses)
        act.target.lose_power(act.chance)
        _start_later(act, act.target)


def lose_disk(act: Act) -> None:
    """The process dies and comes back with an empty disk."""
    has_copy = act.survival.has_copy_elsewhere(act.target)
    if act.survival.may_die(act.target, loses=True, has_copy=has_copy):
        act.tell(f"{act.target.name} is killed and loses its disk")
        act.around.died(act.target, has_lost=True)
        act.target.lose_disk()
        _start_later(act, act.target)


def black_out(act: Act) -> None:
    """All processes die at once, and one comes back with an empty disk where the cluster promises to survive that."""
    has_copy = act.survival.has_copy_elsewhere(act.target)
    loses = act.survival.may_die(act.target, loses=True, has_copy=has_copy)
    if not loses and not act.survival.may_die(act.target, loses=False):
        return
    act.tell("all brokers are killed" + (f", {act.target.name} loses its disk" if loses else ""))
    for broker in act.around.brokers.values():
        if broker.condition is not Condition.UP:
            continue
        if broker is act.target and loses:
            act.around.died(broker, has_lost=True)
            broker.lose_disk()
            _start_later(act, broker)
        else:
            _die(act, broker)
        act.survival.note_death(broker, loses=broker is act.target and loses)


def pause(act: Act) -> None:
    """The process stands still and does not know it."""
    broker, process = act.target, act.target.process
    act.tell(f"{broker.name} is paused")
    broker.pause()

    def go_on() -> None:
        if process is not None and not process.has_ended:
            act.around.story.tell(f"{broker.name} goes on")
            process.resume()

    act.undo_later(go_on)


def bounce(act: Act) -> None:
    """An orderly stop; the cluster starts it again."""
    act.tell(f"{act.target.name} is told to stop")
    act.target.stop()
    _start_later(act, act.target)


def upgrade(act: Act) -> None:
    """An orderly stop; what is started again is the newer version."""
    if act.target.is_older:
        act.tell(f"{act.target.name} is told to stop, to be upgraded")
        act.target.is_older = False
        act.target.stop()
        _start_later(act, act.target)


def jump(act: Act) -> None:
    """The wall clock jumps."""
    jump_ms = act.chance.randrange(-_MAX_CLOCK_JUMP_MS, _MAX_CLOCK_JUMP_MS)
    act.tell(f"the clock of {act.target.name} is off by {jump_ms} ms")
    act.target.set_wall_offset(jump_ms * MILLISECOND_US)


def _die(act: Act, broker: SimulatedBroker) -> None:
    act.around.died(broker, has_lost=False)
    broker.kill()
    _start_later(act, broker)


def _start_later(act: Act, broker: SimulatedBroker) -> None:
    def start() -> None:
        if broker.condition is Condition.DOWN:
            broker.start()

    act.undo_later(start)
