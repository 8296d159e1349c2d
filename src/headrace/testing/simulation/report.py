"""The report of a run that failed: which rule was broken, in which cluster, after which faults, and how to see it again."""

import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from headrace.testing.simulation.cluster import Outcome, SimulatedCluster
from headrace.testing.simulation.log_watch import watched_logs
from headrace.testing.simulation.mixed_versions import mixed_versions
from headrace.testing.simulation.plan import Plan, draw_plan
from headrace.testing.simulation.story import Told, Violation

STORY_LINES: Final = 60
_LONGEST_LINE: Final = 300


class Failure(NamedTuple):
    """A run that failed."""

    plan: Plan
    rule: str
    text: str
    steps: int
    at_ms: int
    told: tuple[Told, ...]
    error: BaseException


def play(
    plan: Plan,
    log_level: int = logging.ERROR,
    make_cluster: Callable[[Plan], SimulatedCluster] = SimulatedCluster,
) -> Outcome | Failure:
    """Play a plan to its end."""
    cluster = make_cluster(plan)
    with (
        watched_logs(cluster.story, cluster.fail, log_level),
        mixed_versions(cluster.is_older),
        cluster.world,
    ):
        try:
            cluster.run()
        except Exception as error:  # noqa: BLE001 (whatever ends a run is a failure)
            return Failure(
                plan,
                error.rule if isinstance(error, Violation) else type(error).__name__,
                str(error),
                cluster.world.scheduler.steps,
                cluster.story.now_ms,
                tuple(cluster.story.told),
                error,
            )
        return cluster.outcome


def play_seed(seed: int) -> Outcome | int:
    """Play a seed: what came of it, or the seed if it failed. What failed is played again by whoever tells of it."""
    outcome = play(draw_plan(seed))
    return seed if isinstance(outcome, Failure) else outcome


def story_of(failure: Failure, lines: int = STORY_LINES) -> str:
    """What a newcomer has to know."""
    plan = failure.plan
    return "\n".join(
        (
            f"seed {plan.seed} breaks the rule '{failure.rule}' at step {failure.steps:,}, "
            f"{failure.at_ms / 1000:.3f} virtual seconds after the start:",
            f"  {failure.text}",
            "the cluster:",
            *(f"  {line}" for line in _cluster(plan)),
            f"the faults that struck ({len(plan.strikes)} planned):",
            *(f"  {line}" for line in _faults(failure.told)),
            f"the last {lines} things that happened ('broker 2.3' is the third life of broker 2):",
            *(_line(told) for told in failure.told[-lines:]),
            f"play it again:            {command_for(plan)}",
            f"with the brokers' logs:   {command_for(plan)} --log info --lines 400",
        )
    )


def command_for(plan: Plan) -> str:
    """What plays a plan again."""
    whole = draw_plan(plan.seed)
    kept = {strike.number for strike in plan.strikes}
    gone = [strike.number for strike in whole.strikes if strike.number not in kept]
    command = f"python -m headrace.testing.simulation --seed {plan.seed}"
    if gone:
        command += f" --without {_ranges(gone)}"
    return command + (" --calm" if plan.is_calm else "")


def _cluster(plan: Plan) -> Iterable[str]:
    yield (
        f"{plan.broker_count} brokers, replication factor {plan.replication_factor}, "
        f"min.insync.replicas {'differs' if plan.defaults_differ else plan.min_insync_replicas}, "
        f"{plan.log_dirs} log directories each, segments of {plan.segment_bytes} bytes"
    )
    yield (
        f"sessions of {plan.granted_timeout_ms} ms ({plan.session_timeout_ms} ms asked for), "
        f"replicas lag after {plan.replica_lag_ms} ms"
    )
    yield f"topics: {', '.join(f'{each.name} ({each.partitions})' for each in plan.topics)}"
    yield f"producers: {', '.join(map(str, plan.producers))}; {plan.group_members} group members"
    yield f"{plan.weather}"
    yield f"{plan.pace}"


def _faults(story: Iterable[Told]) -> Iterable[str]:
    return (_line(told).strip() for told in story if told.text.startswith("FAULT"))


def _line(told: Told) -> str:
    text = told.text if len(told.text) <= _LONGEST_LINE else told.text[:_LONGEST_LINE] + " …"
    return f"  {told.at_us / 1000:10.2f} ms  {text}"


def _ranges(numbers: list[int]) -> str:
    """`1-3,7` for 1, 2, 3 and 7."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
