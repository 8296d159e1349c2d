"""Consumer groups: who belongs to a group, in which generation, and where it stands in each partition.

The classic protocol lives in `join`, `static_members`, `sync`, `rebalance` and `membership`; committed
offsets in `offsets` and `expiry`; both share only the group id. A further group protocol is a further
set of modules beside these, over its own kind of group in `state`. Entry point: `groups.Groups`.
"""
