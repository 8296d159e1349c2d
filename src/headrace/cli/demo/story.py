"""The demo in its order: each step does something, checks it, and says so in a line or two. Nothing is said unchecked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from headrace.cli.demo import shop
from headrace.cli.demo.chart import text_bar
from headrace.cli.demo.pipeline_steps import count_windows, draw
from headrace.cli.demo.stage import BROKERS, SESSION_MS, Leadership, Stage, require
from headrace.cli.demo.traffic import read_as_group, read_everything, send
from headrace.cli.local.places import command_name

TOPIC: Final = "shop-events"
PARTITIONS: Final = 6
_MEMBERS: Final = 3
_SHARE_BEFORE_THE_KILL: Final = 0.6
_EVENTS_PER_S_AT_THE_KILL: Final = 4_000


def tell(stage: Stage, *, events: int, picture: Path | None) -> None:
    """The whole demo. Raises Failure where something it promised does not hold, Stopped where it shall end."""
    begun_s = time.monotonic()
    stream = shop.events(events)
    early = stream[: int(events * _SHARE_BEFORE_THE_KILL)]
    with stage.servers:
        start(stage)
        create_topic(stage)
        acknowledged = send_events(stage, early)
        share_events(stage, len(early))
        acknowledged |= kill_a_broker(stage, stream[len(early) :])
        check_nothing_lost(stage, acknowledged)
        if picture is not None:
            rows = count_windows(stage, stream, TOPIC, PARTITIONS)
            draw(stage, rows, picture)
    say_goodbye(stage, time.monotonic() - begun_s)


def start(stage: Stage) -> None:
    begun_s = time.monotonic()
    with stage.console.status("    starting ZooKeeper and three brokers"):
        stage.servers.start()
    seconds = time.monotonic() - begun_s
    stage.say(f"a real ZooKeeper and {BROKERS} brokers serve after {seconds:.1f} s")


def create_topic(stage: Stage) -> None:
    stage.create_topic(TOPIC, PARTITIONS)
    stage.say(
        f"topic [bold]{TOPIC}[/], {PARTITIONS} partitions with {BROKERS} replicas each, in sync:"
    )
    show_leaders(stage, stage.leaders(TOPIC))


def show_leaders(stage: Stage, leaders: Mapping[int, Leadership], lost: int = 0) -> None:
    """A line per broker with what it leads; those that came from a lost one are marked."""
    for number in range(1, BROKERS + 1):
        if number == lost:
            stage.add(f"  broker {number}  [red]killed[/]")
            continue
        leads = ", ".join(str(index) for index, each in leaders.items() if each.leader == number)
        in_sync = sum(number in each.isr for each in leaders.values())
        stage.add(f"  broker {number}  leads [green]{leads or 'none':<17}[/] in sync for {in_sync}")


def send_events(stage: Stage, stream: Sequence[shop.Event]) -> set[bytes]:
    begun_s = time.monotonic()
    with stage.bar("sending", len(stream)) as move:
        sent = send(stage.address, TOPIC, stream, stage.stop, on_progress=move)
    seconds = time.monotonic() - begun_s
    stage.say(
        f"{len(stream):,} events of a shop sent, each acknowledged by all replicas,"
        f" in {seconds:.1f} s"
    )
    return sent.acknowledged


def share_events(stage: Stage, wanted: int) -> None:
    with stage.bar("reading", wanted) as move:
        shares = read_as_group(stage.address, TOPIC, _MEMBERS, wanted, stage.stop, on_progress=move)
    total = sum(share.events for share in shares)
    require(total >= wanted, f"the group read {total:,} of {wanted:,} events")
    owned = sorted(number for share in shares for number in share.partitions)
    require(set(owned) == set(range(PARTITIONS)), f"the group read partitions {owned} only")
    stage.say(f"a consumer group of {_MEMBERS} has read all {total:,}, each member its share:")
    longest = max(share.events for share in shares)
    for number, share in enumerate(shares, 1):
        bar = text_bar(30 * share.events / longest)
        partitions = ", ".join(map(str, sorted(share.partitions)))
        stage.add(
            f"  member {number}  [green]{bar:<30}[/] {share.events:>7,}  partitions {partitions}"
        )


def kill_a_broker(stage: Stage, stream: Sequence[shop.Event]) -> set[bytes]:
    """Kill the broker that leads most, in the middle of the stream. Returns what was acknowledged all the same."""
    before = stage.leaders(TOPIC)
    leads = [each.leader for each in before.values()]
    victim = max(set(leads), key=leads.count)
    killed_s = 0.0

    def kill_in_the_middle(completed: int) -> None:
        nonlocal killed_s
        move(completed)
        if completed > len(stream) // 4 and not killed_s:
            stage.servers.brokers[victim].kill()
            killed_s = time.monotonic()

    with stage.bar("sending, and killing a broker", len(stream)) as move:
        sent = send(
            stage.address,
            TOPIC,
            stream,
            stage.stop,
            on_progress=kill_in_the_middle,
            per_second=_EVENTS_PER_S_AT_THE_KILL,
        )
    require(killed_s > 0, "the stream ended before a broker was killed")
    stage.servers.wait_until(
        lambda: _is_led_without(stage.leaders(TOPIC), victim), "the others lead everything"
    )
    after = stage.leaders(TOPIC)
    moved = sum(each.leader == victim for each in before.values())
    stage.say(
        f"broker {victim} killed in the middle of {len(stream):,} more;"
        f" {moved} partitions have new leaders:"
    )
    show_leaders(stage, after, lost=victim)
    stage.add(
        f"  longest wait for an acknowledgement: {sent.longest_pause_s:.1f} s"
        f" (session time-out: {SESSION_MS / 1000:.0f} s)"
    )
    begun_s = time.monotonic()
    with stage.console.status(f"    broker {victim} starts again and catches up"):
        stage.servers.launch_broker(victim)
        stage.wait_until_in_sync(TOPIC)
    stage.say(f"broker {victim} is back and in sync again after {time.monotonic() - begun_s:.1f} s")
    return sent.acknowledged


def _is_led_without(leaders: Mapping[int, Leadership], victim: int) -> bool:
    return len(leaders) == PARTITIONS and all(
        each.leader > 0 and each.leader != victim for each in leaders.values()
    )


def check_nothing_lost(stage: Stage, acknowledged: set[bytes]) -> None:
    with stage.console.status("    reading everything"):
        stored = read_everything(stage.address, TOPIC, range(PARTITIONS), stage.stop)
    lost = acknowledged - stored.keys()
    require(not lost, f"{len(lost):,} acknowledged events are gone")
    twice = [value for value, count in stored.items() if count > 1]
    require(not twice, f"{len(twice):,} events are stored twice")
    stage.say(f"all {len(acknowledged):,} acknowledged events are there: none lost, none twice")


def say_goodbye(stage: Stage, seconds: float) -> None:
    me = command_name()
    stage.console.print(
        f"\n[bold green]All of it was verified[/], in {seconds:.0f} s. Where to go next:\n"
        f"    {me} dev     a broker of your own (--brokers 3: a cluster)\n"
        f"    {me} top     what it does, live\n"
        f"    {me} --help  Kafka's tools, with Kafka's options\n"
        "    README.md: a client, a broker inside your tests, a pipeline of your own"
    )
