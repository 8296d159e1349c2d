"""Metadata and rule sets: order, merging, refusals."""

import msgspec
import pytest

from headrace.registry import errors
from headrace.registry.state.metadata import (
    Metadata,
    Rule,
    RuleSet,
    merge_metadata,
    merge_rule_sets,
    with_confluent_version,
    without_confluent_version,
    without_rules,
)


def rule(name: str = "r", **more: str) -> Rule:
    return msgspec.convert({"name": name, "type": "CEL", "mode": "WRITE", **more}, Rule)


def test_everything_is_in_order_and_what_is_empty_is_left_out() -> None:
    metadata = Metadata(tags={"b": ["y", "x", "x"], "a": []}, properties={"b": "1", "a": "2"})
    assert msgspec.json.encode(metadata) == (
        b'{"tags":{"a":[],"b":["x","y"]},"properties":{"a":"2","b":"1"}}'
    )
    assert msgspec.json.encode(Metadata(tags={}, sensitive=[])) == b"{}"
    assert msgspec.json.encode(rule()) == (
        b'{"name":"r","mode":"WRITE","type":"CEL","disabled":false}'
    )


def test_the_stronger_metadata_win() -> None:
    weaker = Metadata(tags={"a": ["x"]}, properties={"k": "1", "l": "1"})
    stronger = Metadata(tags={"a": ["y"]}, properties={"k": "2"}, sensitive=["k"])
    assert merge_metadata(weaker, stronger) == Metadata(
        tags={"a": ["y"]}, properties={"k": "2", "l": "1"}, sensitive=["k"]
    )
    assert merge_metadata(None, stronger) == stronger
    assert merge_metadata(weaker, None) == weaker


def test_rules_of_the_same_name_are_replaced() -> None:
    weaker = RuleSet(domain_rules=[rule("a"), rule("b")])
    stronger = RuleSet(domain_rules=[rule("b", expr="1")], enable_at="CLIENT")
    merged = merge_rule_sets(weaker, stronger)
    assert merged == RuleSet(domain_rules=[rule("a"), rule("b", expr="1")], enable_at="CLIENT")
    assert without_rules(merged, ["a"]) == stronger
    assert without_rules(None, ["a"]) is None


def test_versions_in_metadata() -> None:
    named = with_confluent_version(Metadata(properties={"k": "1"}), 3)
    assert named.confluent_version == 3
    assert without_confluent_version(named) == Metadata(properties={"k": "1"})
    assert Metadata(properties={"confluent:version": "x"}).confluent_version is None


@pytest.mark.parametrize(
    "rules",
    [
        RuleSet(domain_rules=[rule(), rule()]),
        RuleSet(domain_rules=[rule("")]),
        RuleSet(domain_rules=[rule("x" * 257)]),
        RuleSet(domain_rules=[rule("a b")]),
        RuleSet(domain_rules=[rule("1")]),
        RuleSet(domain_rules=[Rule(type="CEL")]),
        RuleSet(domain_rules=[Rule(name="r", mode="WRITE")]),
        RuleSet(domain_rules=[rule(mode="UPGRADE")]),
        RuleSet(migration_rules=[rule()]),
        RuleSet(encoding_rules=[rule(mode="DOWNGRADE")]),
        RuleSet(domain_rules=[rule(onSuccess="A,B")]),
    ],
)
def test_rules_that_cannot_be_meant(rules: RuleSet) -> None:
    with pytest.raises(errors.RegistryError) as refused:
        rules.check()
    assert refused.value.code == 42210


def test_rules_that_can_be_meant() -> None:
    RuleSet(
        migration_rules=[rule("up", mode="UPDOWN", onSuccess="A,B")],
        domain_rules=[rule("in"), rule("both", mode="WRITEREAD", onFailure="A,B")],
        encoding_rules=[rule("out", mode="READ")],
    ).check()
