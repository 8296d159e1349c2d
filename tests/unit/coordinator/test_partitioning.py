"""Java's String.hashCode decides who coordinates what. Expected values are Java's own."""

import pytest

from headrace.coordinator.partitioning import coordinator_partition, java_hash


@pytest.mark.parametrize(
    ("key", "expected_hash", "partition_of_50"),
    [
        ("", 0, 0),
        ("abc", 96354, 4),
        ("orders-app", 772757305, 5),
        ("console-consumer-12345", 158455506, 6),
        ("polygenelubricants", -2147483648, 0),
        ("grüße", 98768023, 23),
        ("日本", 835047, 47),
        ("🚀-group", 732881429, 29),
    ],
)
def test_java_hash(key: str, expected_hash: int, partition_of_50: int) -> None:
    assert java_hash(key) == expected_hash
    assert coordinator_partition(key, 50) == partition_of_50
