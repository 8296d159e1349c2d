import pytest

from headrace.broker.upkeep.open_files import shares_of


@pytest.mark.parametrize("limit", [256, 1024, 65536, 2**31 - 1])
def test_connections_leave_descriptors_for_logs_and_others(limit: int) -> None:
    shares = shares_of(limit)
    assert shares.segment_files >= 64
    assert shares.connections >= limit // 2
    assert limit - sum(shares) >= limit // 8


def test_a_tiny_limit_still_allows_a_connection() -> None:
    assert shares_of(32).connections >= 1
