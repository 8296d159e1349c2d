"""Consumer groups: who belongs to a group, in which generation, and where it stands in each partition.

The classic protocol is in `classic`; committed offsets, which all group protocols share, are in `offsets` and `expiry`. A
further group protocol is a further package beside `classic`. Entry point: `groups.Groups`.
"""
