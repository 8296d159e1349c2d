"""Which instance becomes the primary."""

import msgspec

from headrace.registry.instance import Identity, elect


def told(members: dict[str, Identity], elected: Identity | None = None) -> str | None:
    encoded = {name: msgspec.json.encode(identity) for name, identity in members.items()}
    parts = elect(encoded, elected)
    assert parts.keys() == members.keys()
    assert len(set(parts.values())) == 1
    master = msgspec.json.decode(next(iter(parts.values())))["master"]
    assert master is None or isinstance(master, str)
    return master


A, B = Identity(host="h", port=1), Identity(host="h", port=2)


def test_the_smallest_address_is_elected() -> None:
    assert told({"y": B, "x": A}) == "x"


def test_the_primary_stays_when_another_instance_joins() -> None:
    assert told({"y": B, "x": A}, elected=B) == "y"


def test_a_primary_that_is_gone_is_replaced() -> None:
    assert told({"x": A}, elected=B) == "x"


def test_an_instance_that_is_not_eligible_is_not_elected() -> None:
    shy = Identity(host="h", port=0, master_eligibility=False)
    assert told({"z": shy, "x": A}) == "x"
    assert told({"z": shy}) is None
