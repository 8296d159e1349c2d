"""Placement of the replicas of new partitions on brokers. Pure; the start index is given.

The rule is the one Kafka used with ZooKeeper: first replicas go round the brokers, the others
follow at a distance that grows by one with each round, so that the followers of one broker's
leaders are spread. With racks, brokers are taken from the racks in turn, and no rack gets a
second replica before each has one.
"""

from collections.abc import Mapping, Sequence


def place(
    racks: Mapping[int, str | None],
    *,
    partitions: int,
    replication_factor: int,
    first_partition: int = 0,
    start_index: int = 0,
    start_shift: int = 0,
) -> list[tuple[int, ...]]:
    """Replicas for each new partition. `racks` has every broker that may take some."""
    assert 0 < replication_factor <= len(racks), "more replicas than brokers"
    with_racks = all(rack is not None for rack in racks.values())
    brokers = _alternating(racks) if with_racks else sorted(racks)
    rack_count = len(set(racks.values())) if with_racks else 1
    placed = []
    shift = start_shift
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start_index) % len(brokers)
        candidates = _followers(brokers, first, shift * rack_count)
        taken = [brokers[first]]
        while len(taken) < replication_factor:
            taken.append(_next(candidates, taken, racks, rack_count))
        placed.append(tuple(taken))
    return placed


def _followers(brokers: Sequence[int], first: int, shift: int) -> list[int]:
    """Every other broker, in the order in which it would be asked."""
    others = len(brokers) - 1
    return [brokers[(first + 1 + (shift + n) % others) % len(brokers)] for n in range(others)]


def _next(
    candidates: list[int], taken: Sequence[int], racks: Mapping[int, str | None], rack_count: int
) -> int:
    """Take the next candidate whose rack has no replica yet, or any once every rack has one."""
    used = {racks[broker] for broker in taken}
    for position, broker in enumerate(candidates):
        if racks[broker] not in used or len(used) >= rack_count:
            # Candidates that were passed over are asked again after all the others.
            candidates[:] = candidates[position + 1 :] + candidates[:position]
            return broker
    raise AssertionError("a rack without replica has no broker")


def _alternating(racks: Mapping[int, str | None]) -> list[int]:
    """The brokers, one of each rack in turn."""
    by_rack: dict[str, list[int]] = {}
    for broker, rack in sorted(racks.items()):
        by_rack.setdefault(str(rack), []).append(broker)
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    deepest = max(map(len, columns), default=0)
    return [column[row] for row in range(deepest) for column in columns if row < len(column)]
