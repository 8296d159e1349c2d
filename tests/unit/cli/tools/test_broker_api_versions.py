"""One line per API, as Kafka's tool prints them."""

from headrace.cli.tools.broker_api_versions import lines


def test_ranges_and_what_is_missing() -> None:
    shown = lines({0: (0, 13), 1: (4, 5), 46: (0, 0), 999: (1, 2), 8: (0, 1), 9: (50, 60)})
    assert "Produce(0): 0 to 13 [usable: 13]" in shown
    assert "Fetch(1): 4 to 5 [usable: 5]" in shown
    assert "ListPartitionReassignments(46): 0 [usable: 0]" in shown
    assert "Metadata(3): UNSUPPORTED" in shown
    assert "UNKNOWN(999): 1 to 2" in shown
    assert "OffsetCommit(8): 0 to 1 [unusable: node too old]" in shown
    assert "OffsetFetch(9): 50 to 60 [unusable: node too new]" in shown
    assert not any(line.startswith("Vote(") for line in shown)
