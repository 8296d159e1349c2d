"""Which brokers get the replicas of new partitions: by placement, or as the client wants it.

Owns what makes such a wish acceptable, with the codes and texts that Kafka answers, and the first
state of the partitions that come of it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from headrace.controller.core import Core, Group
from headrace.controller.elections import first_leader
from headrace.controller.placement import place
from headrace.controller.values import PartitionState
from headrace.coordination.nodes import PartitionStateNode
from headrace.coordination.store import Create
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused


def chosen(core: Core, count: int, factor: int) -> list[tuple[int, ...]]:
    """Replicas for `count` first partitions of a topic; -1 stands for the default."""
    if factor == 0 or factor < -1:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count == 0 or count < -1:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    factor = core.settings.default_replication_factor if factor == -1 else factor
    count = core.settings.num_partitions if count == -1 else count
    check_count(core, count)
    racks = racks_for(core, factor)
    below = core.random_below
    return place(
        racks,
        partitions=count,
        replication_factor=factor,
        start_index=below(len(racks)),
        start_shift=below(len(racks)),
    )


def check_count(core: Core, count: int) -> None:
    """Refuse more partitions than one request may ask for."""
    if count > core.settings.max_partitions_per_request:
        raise Refused(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def check_fits(core: Core, topic: str, count: int, group: Group) -> None:
    """Refuse a topic whose assignment the store does not take in one write."""
    if not core.fits(group):
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The assignment of topic '{topic}' with {count} partitions is too large for the "
            f"coordination store, which takes {core.max_group_bytes} bytes in one write.",
        )


def racks_for(core: Core, factor: int) -> dict[int, str | None]:
    """The brokers that can take replicas, and their racks. Refused when they are too few."""
    brokers = core.state.brokers
    racks = {id_: brokers[id_].rack for id_ in core.eligible()}
    prefix = f"Unable to replicate the partition {factor} time(s): "
    if not racks:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            prefix + "All brokers are currently fenced or in controlled shutdown.",
        )
    if factor > len(racks):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{prefix}The target replication factor of {factor} cannot be reached because only "
            f"{len(racks)} broker(s) are registered or some brokers have all their log directories "
            "cordoned.",
        )
    return racks


def assigned(
    core: Core,
    assignments: Sequence[tuple[int, tuple[int, ...]]],
    *,
    count: int,
    factor: int,
) -> list[tuple[int, ...]]:
    """Replicas as the client wants them."""
    if factor != -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if count != -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    by_partition: dict[int, tuple[int, ...]] = {}
    for partition, brokers in assignments:
        if partition in by_partition:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {partition}",
            )
        check_assignment(core, brokers, factor=len(assignments[0][1]))
        check_someone_lives(core, partition, brokers)
        by_partition[partition] = brokers
    if sorted(by_partition) != list(range(len(by_partition))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    check_count(core, len(by_partition))
    return [by_partition[partition] for partition in range(len(by_partition))]


def check_assignment(core: Core, brokers: Sequence[int], *, factor: int | None = None) -> None:
    """Refuse replicas that are no set of registered brokers of the expected size."""
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not brokers:
        raise Refused(code, "The manual partition assignment includes an empty replica list.")
    for broker in brokers:
        if broker not in core.state.brokers:
            raise Refused(
                code,
                f"The manual partition assignment includes broker {broker}, but no such broker "
                "is registered.",
            )
    for broker in sorted(brokers):
        if list(brokers).count(broker) > 1:
            raise Refused(
                code,
                f"The manual partition assignment includes the broker {broker} more than once.",
            )
    if factor is not None and len(brokers) != factor:
        raise Refused(
            code,
            f"The manual partition assignment includes a partition with {len(brokers)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s).",
        )


def check_someone_lives(core: Core, partition: int, brokers: Sequence[int]) -> None:
    """Refuse replicas of which none could lead."""
    if not core.eligible().intersection(brokers):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown.",
        )


def first_states(
    core: Core, replicas: Sequence[tuple[int, ...]], configs: Mapping[str, str]
) -> tuple[PartitionState, ...]:
    """New partitions of a topic with these configs on these replicas, with leaders."""
    live = core.eligible()
    min_isr = core.configured_min_isr(configs)
    return tuple(
        msgspec.structs.replace(
            first_leader(PartitionState(brokers, min_isr=min_isr), live), partition_epoch=0
        )
        for brokers in replicas
    )


def state_groups(
    core: Core, topic: str, first: int, partitions: Sequence[PartitionState]
) -> list[Group]:
    """The writes of new partitions' states."""
    groups: list[Group] = []
    for index, partition in enumerate(partitions, first):
        path = PartitionStateNode.path(topic, index)
        data = core.partition_data(partition)
        groups.append((Create(path.removesuffix("/state")), Create(path, data)))
    return groups
