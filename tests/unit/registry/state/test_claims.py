"""Which records count, by the claims that they carry."""

from headrace.registry.state.claims import Claims, claim_header, new_claim_header


def test_a_record_counts_while_its_claim_is_the_newest() -> None:
    claims = Claims()
    assert claims.accept(0, b"noop", [new_claim_header("a")])
    assert claims.accept(1, b"k", [claim_header(0)])
    assert claims.accept(2, b"noop", [new_claim_header("b")])
    assert not claims.accept(3, b"k", [claim_header(0)])
    assert claims.accept(4, b"l", [claim_header(2)])


def test_records_of_other_registries_count() -> None:
    claims = Claims()
    claims.accept(0, b"noop", [new_claim_header("a")])
    assert claims.accept(1, b"k", None)
    assert claims.accept(2, b"k", [("other", b"x")])


def test_a_record_counts_after_its_claim_record_was_compacted_away() -> None:
    claims = Claims()
    assert claims.accept(1, b"k", [claim_header(0)])
    assert claims.accept(7, b"l", [claim_header(5)])
    assert not claims.accept(8, b"m", [claim_header(0)])
    assert claims.accept(9, b"noop", [new_claim_header("c")])


def test_keys_are_to_be_repeated_until_a_record_of_theirs_counts() -> None:
    claims = Claims()
    claims.accept(2, b"noop", [new_claim_header("b")])
    claims.accept(3, b"k", [claim_header(0)])
    assert list(claims.keys_to_repeat) == [b"k"]
    claims.accept(4, b"k", [claim_header(2)])
    assert not claims.keys_to_repeat
