import pytest

from bench.beside_kafka.page_cache import STEP_BYTES, FullPageCache, free_memory_in


def test_free_memory_is_what_is_not_even_a_cache() -> None:
    assert free_memory_in("MemTotal:  100 kB\nMemFree:    7 kB\nMemAvailable: 90 kB\n") == 7 * 1024


def test_it_reads_until_nothing_more_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([900, 640, 380, 300, 290, 0])
    reads = 0

    def read_on(cache: FullPageCache) -> None:
        nonlocal reads
        reads += 1
        cache._position += STEP_BYTES

    monkeypatch.setattr(FullPageCache, "_read_on", read_on)
    with FullPageCache(lambda: next(left) * 1024 * 1024) as cache:
        assert cache.fill() == 4 * STEP_BYTES
    assert reads == 4
