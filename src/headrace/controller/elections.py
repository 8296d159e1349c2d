"""Election of a partition's leader. Pure functions on one partition; the caller writes the result.

The order of trust: a living member of the ISR; a living eligible leader replica; the last known
leader, when neither ISR nor ELR has anyone left (nobody can know more than it does); and, only
where it is allowed, any living replica, which loses what it does not have. Among equals the
first in the order of the assignment wins. Every election has a new leader epoch, even when the
old leader wins it: a restarted leader must not write again under an epoch it already used.
"""

from collections.abc import Collection

import msgspec

from headrace.controller.values import NO_LEADER, PartitionState

replace = msgspec.structs.replace


def with_isr(
    partition: PartitionState, isr: tuple[int, ...], *, distrusted: Collection[int] = ()
) -> PartitionState:
    """The partition with another ISR, and the ELR that follows from it.

    Below the minimal ISR nothing is committed, so who leaves then still has all that is: it
    stays eligible. `distrusted` replicas may have lost data and are not.
    """
    if set(isr).issuperset(partition.replicas):
        partition = replace(partition, unclean_epoch=-1, crashed_epoch=-1)
    if len(isr) >= partition.needed_isr:
        return _trusting(partition, isr)
    elr = tuple(
        replica
        for replica in partition.replicas
        if (replica in partition.isr or replica in partition.elr)
        and replica not in isr
        and replica not in distrusted
    )
    if not isr and partition.leader != NO_LEADER:
        last_known = (partition.leader,)
        partition = replace(
            partition, last_known_elr=last_known, last_known_epoch=partition.leader_epoch
        )
    emptied = () if isr else partition.emptied
    return replace(partition, isr=isr, elr=elr, emptied=emptied)


def _trusting(partition: PartitionState, isr: tuple[int, ...]) -> PartitionState:
    """The partition with this ISR, and no other replica that may be elected."""
    return replace(partition, isr=isr, elr=(), last_known_elr=(), last_known_epoch=-1, emptied=())


def with_min_isr(partition: PartitionState, min_isr: int) -> PartitionState:
    """The partition with another effective min.insync.replicas, and the ELR that follows from it.

    An ISR that now suffices commits from here on, and then nobody outside of it is eligible. If it does not suffice
    for the new minimum either, the ELR stays, because nothing was committed since its members left. An ELR whose
    minimum was never written is dropped, because nobody knows by which one its leader committed.
    """
    if min_isr == partition.min_isr:
        return partition
    elr = partition.elr if partition.min_isr else ()
    return with_isr(replace(partition, min_isr=min_isr, elr=elr), partition.isr)


def without_lost_disks(partition: PartitionState, emptied: Collection[int]) -> PartitionState:
    """The partition, nobody in sync, after brokers came back without a log directory that they had.

    They are not the last known leader any more, because another replica may still have everything; a partition with
    one replica has no other. Which partitions the directory held is not known, so this counts for all of the broker's.
    """
    lost = [replica for replica in partition.replicas if replica in emptied]
    if not lost or len(partition.replicas) == 1:
        return partition
    return replace(
        partition,
        last_known_elr=tuple(each for each in partition.last_known_elr if each not in lost),
        emptied=tuple(each for each in partition.replicas if each in {*lost, *partition.emptied}),
    )


def with_leader(partition: PartitionState, leader: int) -> PartitionState:
    """The partition under a leader that may come from outside its ISR."""
    elected = replace(partition, leader=leader, leader_epoch=partition.leader_epoch + 1)
    if leader in partition.isr:
        return elected
    return with_isr(elected, (leader,))


def with_epoch(partition: PartitionState, leader_epoch: int) -> PartitionState:
    """The same election under another leader epoch."""
    unclean = partition.unclean_epoch
    if unclean == partition.leader_epoch:
        unclean = leader_epoch
    return replace(partition, leader_epoch=leader_epoch, unclean_epoch=unclean)


def without_leader(partition: PartitionState) -> PartitionState:
    """The partition without a leader."""
    if partition.leader == NO_LEADER:
        return partition
    return replace(partition, leader=NO_LEADER, leader_epoch=partition.leader_epoch + 1)


def clean_leader(partition: PartitionState, candidates: Collection[int]) -> int | None:
    """The candidate that has everything committed, or None."""
    for trusted in (partition.isr, partition.elr):
        for replica in partition.replicas:
            if replica in trusted and replica in candidates:
                return replica
    return _last_known_leader(partition, candidates)


def _last_known_leader(partition: PartitionState, candidates: Collection[int]) -> int | None:
    """The last leader, if nobody is trusted any more. Only one that did not shut down cleanly is not eligible itself."""
    if not partition.isr and not partition.elr:
        for replica in partition.last_known_elr:
            if replica in partition.replicas and replica in candidates:
                return replica
    return None


def complete_copies(partition: PartitionState) -> set[int]:
    """The replicas that are held to have everything committed, alive or not."""
    trusted = {*partition.isr, *partition.elr} or {*partition.last_known_elr}
    return trusted & {*partition.replicas}


def unclean_leader(partition: PartitionState, candidates: Collection[int]) -> int | None:
    """Any living replica, or None; one that lost its disk or is being added comes last, because it has the least."""
    by_trust = sorted(
        partition.replicas,
        key=lambda replica: (replica in partition.emptied, replica in partition.adding),
    )
    return next((replica for replica in by_trust if replica in candidates), None)


def elect(
    partition: PartitionState, candidates: Collection[int], *, unclean: bool
) -> PartitionState:
    """Elect a leader among the candidates, or leave the partition without one."""
    leader = clean_leader(partition, candidates)
    if leader is not None:
        if _last_known_leader(partition, candidates) is not None:
            # It has lost what it had not synced, if its machine lost power; after several crashes the latest epoch counts.
            crashed_epoch = max(partition.crashed_epoch, partition.last_known_epoch)
            partition = replace(partition, crashed_epoch=crashed_epoch)
        return with_leader(partition, leader)
    leader = unclean_leader(partition, candidates) if unclean else None
    if leader is None:
        return without_leader(partition)
    # This leader may lack records that others have, so no other replica is eligible any more.
    outset = replace(_trusting(partition, ()), unclean_epoch=partition.leader_epoch + 1)
    return with_leader(outset, leader)


def first_leader(partition: PartitionState, live: Collection[int]) -> PartitionState:
    """The state in which a partition starts: every living replica is in sync, for all are empty."""
    isr = tuple(replica for replica in partition.replicas if replica in live)
    if not isr:
        return partition
    return replace(partition, isr=isr, leader=isr[0], leader_epoch=0)


def after_loss(
    partition: PartitionState,
    *,
    live: Collection[int],
    candidates: Collection[int],
    restarted: Collection[int],
    distrusted: Collection[int],
    unclean: bool,
    emptied: Collection[int] = (),
) -> PartitionState:
    """The partition after brokers went away or came back as another incarnation.

    `restarted` brokers are alive, but what they were before is void: they leave the ISR and
    come back through their leader once they have caught up. Of these, `distrusted` ones did not
    shut down cleanly, and `emptied` ones lost a log directory. Among the `candidates` for leadership, a restarted one may win too, when
    nobody who stayed can lead.
    """
    steady = tuple(b for b in partition.isr if b in live and b not in restarted)
    if steady != partition.isr or any(b in distrusted for b in partition.elr):
        partition = with_isr(partition, steady, distrusted=distrusted)
    if partition.leader in steady:
        return partition
    if not partition.isr:
        partition = without_lost_disks(partition, emptied)
    return elect(partition, candidates, unclean=unclean)
