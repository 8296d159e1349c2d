"""Links between brokers, to the store and to clients: black holes, resets, refusals, slowness."""

from headrace.testing.simulation.faults.act import Act
from headrace.testing.virtual.scheduler import MILLISECOND_US
from headrace.testing.virtual.zookeeper import ZOOKEEPER_HOST

Way = tuple[str, str]


def split(act: Act) -> None:
    """A black hole between two brokers, one way or both."""
    target, other = act.target, act.other_broker()
    ways = [(target.host, other.host), (other.host, target.host)]
    if act.chance.random() < 0.3:
        act.chance.shuffle(ways)
        ways.pop()
    act.tell(f"black hole between {target.name} and {other.name} ({len(ways)} ways)")
    _cut(act, ways)


def reset(act: Act) -> None:
    """Connections between two brokers are reset, and for a while none can be made, one way or both."""
    target, other = act.target, act.other_broker()
    ways = [(target.host, other.host), (other.host, target.host)]
    if act.chance.random() < 0.4:
        act.chance.shuffle(ways)
        ways.pop()
    act.tell(f"reset between {target.name} and {other.name} ({len(ways)} ways refused)")
    act.around.world.network.reset(target.host, other.host)
    _refuse(act, ways)


def refuse(act: Act) -> None:
    """A proxy before a living broker is away: its connections end, and nobody can make another."""
    network, host = act.around.world.network, act.target.host
    act.tell(f"{act.target.name} lives, and refuses connections")
    others = sorted(network.hosts - {host, ZOOKEEPER_HOST})
    if act.chance.random() < 0.7:
        for other in others:
            network.reset(host, other)
    _refuse(act, [(other, host) for other in others])


def slow(act: Act) -> None:
    """Everything from and to a broker takes long."""
    network, host = act.around.world.network, act.target.host
    delay_ms = act.chance.choice((20, 150, 600))
    act.tell(f"everything to and from {act.target.name} takes {delay_ms} ms longer")
    network.slow_us[host] = delay_ms * MILLISECOND_US

    def undo() -> None:
        network.slow_us.pop(host, None)

    act.undo_later(undo)


def cut_clients(act: Act) -> None:
    """A black hole between clients and a broker."""
    network, host = act.around.world.network, act.target.host
    brokers = {each.host for each in act.around.brokers.values()}
    clients = sorted(network.hosts - brokers - {ZOOKEEPER_HOST})
    act.tell(f"black hole between {act.target.name} and clients")
    _cut(act, [way for client in clients for way in ((client, host), (host, client))])


def cut_store(act: Act) -> None:
    """A broker's connection to the store is reset, and it cannot make another for a while."""
    act.tell(f"{act.target.name} is reset from the store")
    act.around.world.network.reset(act.target.host, ZOOKEEPER_HOST)
    _refuse(act, [(act.target.host, ZOOKEEPER_HOST)])


def silence_store(act: Act) -> None:
    """A broker's link to the store is a black hole, one way or both: only its lease tells it."""
    host = act.target.host
    ways = [(host, ZOOKEEPER_HOST), (ZOOKEEPER_HOST, host)]
    if act.chance.random() < 0.3:
        act.chance.shuffle(ways)
        ways.pop()
    act.tell(f"black hole between {act.target.name} and the store ({len(ways)} ways)")
    # Long enough for a session to end, whatever its time-out.
    _cut(act, ways, longest_ms=2 * act.around.plan.session_timeout_ms)


def _cut(act: Act, ways: list[Way], longest_ms: int = 0) -> None:
    cut = act.around.world.network.cut
    fresh = [way for way in ways if way not in cut]
    cut.update(fresh)
    act.undo_later(lambda: cut.difference_update(fresh), longest_ms)


def _refuse(act: Act, ways: list[Way]) -> None:
    refused = act.around.world.network.refused
    fresh = [way for way in ways if way not in refused]
    refused.update(fresh)
    act.undo_later(lambda: refused.difference_update(fresh))
