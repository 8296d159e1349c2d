"""Which broken variant the simulation of real brokers catches by which seed. Variants that are not here are not known to be caught."""

from typing import NamedTuple

from headrace.testing.simulation.plan import Fault
from tests.simulation.broken_variants import (
    Variant,
    acknowledges_before_the_isr_has_it,
    commits_by_its_own_minimum,
    commits_what_the_leader_has,
    elects_uncleanly_beside_a_living_session,
    forgets_what_it_proposed,
    leads_again_after_a_restart,
    leads_without_a_registration,
    outlives_its_lease,
    truncates_by_high_watermark,
    trusts_a_last_leader_without_its_disk,
    trusts_whoever_comes_back,
)


class Caught(NamedTuple):
    """A seed that catches a variant, and the faults without which no seed can (one of them is enough; none: any seed)."""

    seed: int
    faults: tuple[Fault, ...] = ()


VARIANTS: dict[Variant, Caught] = {
    truncates_by_high_watermark: Caught(2),
    acknowledges_before_the_isr_has_it: Caught(1),
    commits_what_the_leader_has: Caught(1),
    leads_again_after_a_restart: Caught(5, (Fault.KILL, Fault.POWER, Fault.WIPE, Fault.BLACKOUT)),
    trusts_whoever_comes_back: Caught(68, (Fault.BLACKOUT,)),
    trusts_a_last_leader_without_its_disk: Caught(68, (Fault.WIPE, Fault.BLACKOUT)),
    forgets_what_it_proposed: Caught(26, (Fault.SPLIT, Fault.SEAT, Fault.PAUSE)),
    commits_by_its_own_minimum: Caught(126, (Fault.KILL, Fault.MINIMUM)),
    outlives_its_lease: Caught(65, (Fault.SILENCE,)),
    leads_without_a_registration: Caught(5, (Fault.REMOVE,)),
    elects_uncleanly_beside_a_living_session: Caught(84, (Fault.REMOVE,)),
}
