"""The process and its interpreter, under the names that every Prometheus client uses (pure)."""

from collections.abc import Iterator
from typing import Final

from headrace.broker.pages.exposition import Kind, family, labels, single
from headrace.broker.pages.process_stats import ProcessStats

_GC_FAMILIES: Final = (
    ("python_gc_collections_total", "collections", "Runs of the garbage collector."),
    ("python_gc_objects_collected_total", "collected", "Objects that the collector freed."),
    (
        "python_gc_objects_uncollectable_total",
        "uncollectable",
        "Objects that the collector found and could not free.",
    ),
)


def process_families(stats: ProcessStats) -> Iterator[str]:
    """Everything but what the system does not tell."""
    figures: tuple[tuple[str, Kind, str, float | None], ...] = (
        ("process_cpu_seconds_total", "counter", "CPU time spent.", stats.cpu_seconds),
        (
            "process_start_time_seconds",
            "gauge",
            "When the process started, in seconds since 1970.",
            stats.start_time_seconds,
        ),
        ("process_open_fds", "gauge", "Open file descriptors.", stats.open_fds),
        ("process_max_fds", "gauge", "File descriptors that may be open.", stats.max_fds),
        ("process_resident_memory_bytes", "gauge", "Memory in RAM.", stats.resident_bytes),
        ("process_virtual_memory_bytes", "gauge", "Address space in use.", stats.virtual_bytes),
        ("process_threads", "gauge", "Threads of the operating system.", stats.threads),
        (
            "kafka_server_kafkaserver_linux_disk_read_bytes",
            "gauge",
            "Bytes that the process made the disks read.",
            stats.disk_read_bytes,
        ),
        (
            "kafka_server_kafkaserver_linux_disk_write_bytes",
            "gauge",
            "Bytes that the process made the disks write.",
            stats.disk_write_bytes,
        ),
    )
    for name, kind, text, value in figures:
        if value is not None:
            yield from single(name, kind, text, value)
    for name, key, text in _GC_FAMILIES:
        samples = (
            (labels(generation=number), generation[key])
            for number, generation in enumerate(stats.gc_generations)
        )
        yield from family(name, "counter", text, samples)
