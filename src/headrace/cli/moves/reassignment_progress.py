"""`reassign-partitions --verify --wait`: waits until what a plan names has moved, and shows on a terminal how far it is."""

import time
from collections.abc import Mapping

from headrace.cli.moves.reassignment_plan import Plan, Replica
from headrace.cli.shell.progress import Progress
from headrace.cli.shell.stopping import interruptible
from headrace.client.admin.admin import Admin
from headrace.client.admin.partitions import describe_log_dirs
from headrace.client.admin.reassignments import list_reassignments
from headrace.wire.refusal import Refused

_LOOK_AGAIN_S = 0.25

# A replica, and whether this is the copy that is on its way to another directory of its broker.
Place = tuple[Replica, bool]
Sizes = Mapping[Place, int]


def wait_until_moved(admin: Admin, plan: Plan) -> None:
    """Return when nothing of the plan moves any more."""
    sizes = _sizes(admin)
    arriving = _arriving(admin, plan, sizes)
    goals = {place: _goal(place, sizes) for place in arriving}
    with interruptible(), Progress("moving", sum(goals.values()), unit="bytes") as progress:
        while arriving:
            progress.update(bytes_done(goals, arriving, sizes))
            time.sleep(_LOOK_AGAIN_S)
            sizes = _sizes(admin)
            arriving = _arriving(admin, plan, sizes)


def _arriving(admin: Admin, plan: Plan, sizes: Sizes) -> set[Place]:
    targets = plan.targets
    changing_disks = {place for place in sizes if place[1] and place[0] in plan.log_dirs}
    changing_brokers = {
        (Replica(broker, *partition), False)
        for partition, each in list_reassignments(admin).items()
        if partition in targets
        for broker in each.adding or each.removing
    }
    return changing_disks | changing_brokers


def bytes_done(
    goals: Sizes,
    arriving: set[Place],
    sizes: Sizes,
) -> int:
    """Of what had to be moved at first, how much has been: all of what no longer moves, else what is there."""
    return sum(
        min(sizes.get(place, 0), goal) if place in arriving else goal
        for place, goal in goals.items()
    )


def _goal(place: Place, sizes: Sizes) -> int:
    """A new replica will be as large as the largest there is."""
    partition = place[0].topic_partition
    return max(
        (size for (replica, _), size in sizes.items() if replica.topic_partition == partition),
        default=0,
    )


def _sizes(admin: Admin) -> Sizes:
    found: dict[Place, int] = {}
    for broker in admin.cluster().nodes:
        try:
            log_dirs = describe_log_dirs(admin, broker)
        except Refused:
            continue  # it may have left
        for log_dir in log_dirs:
            for each in log_dir.replicas:
                found[Replica(broker, *each.partition), each.is_future] = each.size_bytes
    return found
