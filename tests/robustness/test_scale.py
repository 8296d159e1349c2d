"""A tenth of what `python -m bench scale` shows, so that every run shows something: it starts, serves and stops."""

from bench.scale import allow_open_files, measure

TOPICS, PARTITIONS, CONNECTIONS = 50, 10, 2000
LONGEST_S = 60.0  # generous: other work may share the machine
LARGEST_MIB = 250.0
ROUND_TRIP_MS = 500.0


def test_a_thousand_partitions_and_two_thousand_connections() -> None:
    connections = min(CONNECTIONS, allow_open_files(CONNECTIONS * 3) // 3)
    lines = measure(topics=TOPICS, partitions=PARTITIONS, connections=connections)
    for line in lines:
        match line.unit:
            case "s":
                assert line.value < LONGEST_S, line
            case "MiB":
                assert line.value < LARGEST_MIB, line
            case "ms":
                assert line.value < ROUND_TRIP_MS, line
    assert len(lines) > 10
