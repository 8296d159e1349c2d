"""What `headrace reassign-partitions` does with a cluster, step by step, and what it says on the way."""

import random
import time
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass

from headrace.cli.moves.reassignment_plan import (
    Assignment,
    Move,
    Plan,
    Replica,
    check_plan,
    moves,
    plan_json,
    throttled_replicas,
)
from headrace.cli.moves.reassignment_progress import wait_until_moved
from headrace.cli.shell.command_line import Failure, nearest
from headrace.cli.shell.output import print_json
from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import ResourceType, alter_configs
from headrace.client.admin.partitions import by_topic, describe_log_dirs
from headrace.client.admin.reassignments import (
    alter_reassignments,
    alter_replica_log_dirs,
    list_reassignments,
)
from headrace.client.admin.topics import describe_topics, list_topics
from headrace.controller.placement import place
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused

BROKER_THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LOG_DIR_THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
TOPIC_THROTTLES = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_TRY_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How `--execute` may go about it."""

    throttle: int | None
    log_dirs_throttle: int | None
    additional: bool
    factor_may_change: bool
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """The directory of a replica, and the one it is on its way to."""

    current: str | None = None
    future: str | None = None


# ---- list and generate


def print_ongoing(admin: Admin, *, as_json: bool) -> None:
    """`--list`."""
    ongoing = sorted(list_reassignments(admin).items())
    if as_json:
        print_json(
            [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "replicas": list(each.replicas),
                    "addingReplicas": list(each.adding),
                    "removingReplicas": list(each.removing),
                }
                for partition, each in ongoing
            ]
        )
        return
    print("Current partition reassignments:" if ongoing else "No partition reassignments found.")
    for partition, each in ongoing:
        line = f"{partition}: replicas: {_joined(each.replicas)}."
        line += f" adding: {_joined(each.adding)}." if each.adding else ""
        line += f" removing: {_joined(each.removing)}." if each.removing else ""
        print(line)


def generate(
    admin: Admin, topics: Sequence[str], brokers: Sequence[int], *, rack_aware: bool
) -> None:
    """`--generate`: where the partitions are, and where they could be."""
    current = _assignment(admin, topics)
    racks = {
        node.broker_id: node.rack if rack_aware else None
        for node in admin.cluster().nodes.values()
        if node.broker_id in brokers
    }
    if len({rack is None for rack in racks.values()}) > 1:
        raise Failure(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to"
            " make replica assignment without rack information."
        )
    proposed: dict[TopicPartition, Sequence[int]] = {}
    for topic, indexes in by_topic(current):
        factor = len(current[TopicPartition(topic, indexes[0])])
        if factor > len(racks):
            raise Failure(
                f"Replication factor: {factor} larger than available brokers: {len(racks)}.",
                why=f"--broker-list names {len(racks)} living brokers, {topic} has {factor} replicas",
                hint=f"name more of these brokers: {_joined(sorted(admin.cluster().nodes))}",
            )
        placed = place(
            racks,
            partitions=len(indexes),
            replication_factor=factor,
            start_index=random.randrange(len(racks)),
            start_shift=random.randrange(len(racks)),
        )
        proposed |= {
            TopicPartition(topic, index): replicas
            for index, replicas in zip(indexes, placed, strict=True)
        }
    here = plan_json(current, _log_dirs(admin, current))
    print(f"Current partition replica assignment\n{here}\n")
    print(f"Proposed partition reassignment configuration\n{plan_json(proposed)}")


# ---- execute


def execute(admin: Admin, plan: Plan, limits: Limits) -> None:
    """`--execute`."""
    check_plan(plan)
    targets = plan.targets
    ongoing = list_reassignments(admin)
    if ongoing and not limits.additional:
        raise Failure(
            "Cannot execute because there is an existing partition assignment.  Use --additional to"
            " override this and create a new partition assignment in addition to the existing one."
            " The --additional flag can also be used to change the throttle by resubmitting the"
            " current reassignment."
        )
    alive = admin.cluster().nodes
    for broker in sorted({broker for replicas in targets.values() for broker in replicas}):
        if broker not in alive:
            raise Failure(
                f"Unknown broker id {broker}",
                why=f"the living brokers are {_joined(sorted(alive))}",
            )
    everywhere = _assignment(admin, sorted({partition.topic for partition in targets}))
    current = {each: replicas for each, replicas in everywhere.items() if each in targets}
    here = plan_json(current, _log_dirs(admin, current))
    print(f"Current partition replica assignment\n\n{here}\n")
    print("Save this to use as the --reassignment-json-file option during rollback", flush=True)
    if limits.throttle is not None or limits.log_dirs_throttle is not None:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to"
            " ensure the throttle is removed."
        )
        if limits.throttle is not None:
            _throttle(admin, moves(ongoing, targets, current), limits.throttle)
        if limits.log_dirs_throttle is not None:
            _throttle_log_dirs(admin, plan.log_dirs, limits.log_dirs_throttle)
    refused = alter_reassignments(
        admin, targets, allow_replication_factor_change=limits.factor_may_change
    )
    if refused:
        raise Failure("Error reassigning partition(s):\n" + _lines(refused))
    names = ",".join(map(str, sorted(targets)))
    print(f"Successfully started partition reassignment{_s(targets)} for {names}", flush=True)
    if plan.log_dirs:
        _move_to_log_dirs(admin, plan.log_dirs, limits.timeout_s)


def _throttle(admin: Admin, moving: Mapping[TopicPartition, Move], rate: int) -> None:
    for topic, values in throttled_replicas(moving).items():
        changes = dict(zip(TOPIC_THROTTLES, values, strict=True))
        alter_configs(admin, ResourceType.TOPIC, topic, add=changes)
    brokers = {broker for move in moving.values() for broker in (*move.sources, *move.destinations)}
    for broker in sorted(brokers):
        rates = dict.fromkeys(BROKER_THROTTLES, str(rate))
        alter_configs(admin, ResourceType.BROKER, str(broker), add=rates)
    print(f"The inter-broker throttle limit was set to {rate} B/s")


def _throttle_log_dirs(admin: Admin, replicas: Iterable[Replica], rate: int) -> None:
    for broker in sorted({replica.broker_id for replica in replicas}):
        change = {LOG_DIR_THROTTLE: str(rate)}
        alter_configs(admin, ResourceType.BROKER, str(broker), add=change)
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def _move_to_log_dirs(admin: Admin, paths: Mapping[Replica, str], timeout_s: float) -> None:
    """Start moves between directories; of replicas that are still to come to their broker, when they have come."""
    pending = dict(paths)
    deadline = time.monotonic() + timeout_s
    while pending:
        for replica in _started(admin, pending):
            print(
                f"Successfully started moving log directory to {pending.pop(replica)} for replica"
                f" {replica.topic_partition} with broker {replica.broker_id} ",
                flush=True,
            )
        if pending and time.monotonic() >= deadline:
            names = ",".join(map(str, sorted(pending)))
            raise Failure(
                f"Timed out before log directory move{_s(pending)} could be started for: {names}",
                hint="give it more time with --timeout",
            )
        if pending:
            time.sleep(_TRY_AGAIN_S)


def _started(admin: Admin, pending: Mapping[Replica, str]) -> list[Replica]:
    started = []
    for broker in {replica.broker_id for replica in pending}:
        paths = {
            each.topic_partition: path for each, path in pending.items() if each.broker_id == broker
        }
        for partition, refusal in alter_replica_log_dirs(admin, broker, paths).items():
            replica = Replica(broker, *partition)
            if refusal is None:
                started.append(replica)
            elif refusal.error_code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise Failure(f"Failed to alter dir for {replica}", why=str(refusal))
    return sorted(started)


# ---- verify and cancel


def verify(admin: Admin, plan: Plan, *, preserve_throttles: bool, wait: bool) -> None:
    """`--verify`: how far it is, and the end of the throttles when all has moved."""
    if wait:
        wait_until_moved(admin, plan)
    ongoing = list_reassignments(admin)
    targets = plan.targets
    settled = {partition.topic for partition in targets if partition not in ongoing}
    current = _assignment(admin, sorted(settled), missing_is_empty=True)
    print("Status of partition reassignment:")
    for partition, wanted in sorted(targets.items()):
        found = current.get(partition, ())
        if partition in ongoing:
            print(f"Reassignment of partition {partition} is still in progress.")
        elif list(found) == list(wanted):
            print(f"Reassignment of partition {partition} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {partition}, but replica set is"
                f" {_joined(found)} rather than {_joined(wanted)}."
            )
    places = whereabouts(admin, plan.log_dirs)
    # Kafka's line of nothing where no directories are named.
    print("\n".join(_move_line(each, plan.log_dirs[each], places) for each in sorted(places)))
    is_moving = any(_is_on_its_way(place) for place in places.values())
    if not ongoing and not is_moving and not preserve_throttles:
        _clear_throttles(admin, targets)


def cancel(admin: Admin, plan: Plan, *, preserve_throttles: bool, timeout_s: float) -> None:
    """`--cancel`."""
    ongoing = list_reassignments(admin, dict(by_topic(plan.targets)))
    if ongoing:
        refused = alter_reassignments(admin, dict.fromkeys(ongoing))
        if refused:
            raise Failure(
                f"Error cancelling partition reassignment{_s(refused)} for:\n{_lines(refused)}"
            )
        names = ",".join(map(str, sorted(ongoing)))
        print(f"Successfully cancelled partition reassignment{_s(ongoing)} for: {names}")
    else:
        print("None of the specified partition reassignments are active.")
    back = {
        replica: place.current
        for replica, place in whereabouts(admin, plan.log_dirs).items()
        if _is_on_its_way(place) and place.current is not None
    }
    if back:
        _move_to_log_dirs(admin, back, timeout_s)
    else:
        print("None of the specified partition moves are active.")
    if not preserve_throttles:
        _clear_throttles(admin, plan.targets)


def whereabouts(admin: Admin, replicas: Iterable[Replica]) -> dict[Replica, Whereabouts]:
    """In which directories replicas are."""
    wanted = set(replicas)
    found = {replica: Whereabouts() for replica in wanted}
    for broker in {replica.broker_id for replica in wanted}:
        for log_dir in describe_log_dirs(admin, broker):
            for each in log_dir.replicas:
                replica = Replica(broker, *each.partition)
                if replica in wanted:
                    place = found[replica]
                    found[replica] = Whereabouts(
                        current=place.current if each.is_future else log_dir.path,
                        future=log_dir.path if each.is_future else place.future,
                    )
    return found


def _is_on_its_way(place: Whereabouts) -> bool:
    return place.current is not None and place.future is not None


def _move_line(replica: Replica, target: str, places: Mapping[Replica, Whereabouts]) -> str:
    place = places[replica]
    where = f"Partition {replica.topic_partition} on broker {replica.broker_id}"
    if place.current is None:
        return (
            f"Partition {replica.topic_partition} is not found in any live log dir on broker"
            f" {replica.broker_id}. There is likely an offline log directory on the broker."
        )
    if place.future is None:
        if place.current == target:
            return f"Reassignment of replica {replica} completed successfully."
        return f"{where} is not being moved from log dir {place.current} to {target}."
    if place.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    return f"{where} is being moved to log dir {place.future} instead of {target}."


def _clear_throttles(admin: Admin, targets: Assignment) -> None:
    brokers = {*admin.cluster().nodes, *(each for some in targets.values() for each in some)}
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_joined(sorted(brokers))}")
    for broker in sorted(brokers):
        names = (*BROKER_THROTTLES, LOG_DIR_THROTTLE)
        alter_configs(admin, ResourceType.BROKER, str(broker), delete=names)
    topics = sorted({partition.topic for partition in targets})
    print(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    for topic in topics:
        try:
            alter_configs(admin, ResourceType.TOPIC, topic, delete=TOPIC_THROTTLES)
        except Refused as refused:
            raise Failure(f"{topic}: {refused}", why=refused.error_code.name) from refused


# ---- what they share


def _assignment(
    admin: Admin, topics: Sequence[str], *, missing_is_empty: bool = False
) -> dict[TopicPartition, Sequence[int]]:
    found: dict[TopicPartition, Sequence[int]] = {}
    for name, topic in describe_topics(admin, topics).items():
        if not isinstance(topic, Refusal):
            for each in topic.partitions:
                found[TopicPartition(name, each.partition)] = each.replicas
        elif topic.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Failure(f"{name}: {topic}", why=topic.error_code.name)
        elif not missing_is_empty:
            raise Failure(
                f"Topic {name} not found.",
                hint=nearest(name, [each.name for each in list_topics(admin)]),
            )
    return found


def _log_dirs(admin: Admin, assignment: Assignment) -> dict[Replica, str]:
    """Where the replicas on living brokers lie."""
    alive = admin.cluster().nodes
    replicas = [
        Replica(broker, *partition)
        for partition, brokers in assignment.items()
        for broker in brokers
        if broker in alive
    ]
    found = whereabouts(admin, replicas)
    return {replica: place.current for replica, place in found.items() if place.current is not None}


def _lines(refused: Mapping[TopicPartition, Refusal]) -> str:
    return "\n".join(f"{partition}: {why}" for partition, why in sorted(refused.items()))


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _s(counted: Sized) -> str:
    return "" if len(counted) == 1 else "s"
