"""Whatever one client writes, every client reads, byte for byte: keys, headers, timestamps, nulls, each codec."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.conformance.clients.client import Client
from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import CODECS, SAMPLES, Received, Record

WrittenBy = Callable[[Client], tuple[str, dict[int, list[Record]]]]


@pytest.fixture(scope="session")
def written_by(address: str, make_topic: MakeTopic) -> WrittenBy:
    """The topic of a writer and what is in it: one partition per codec, written once for all readers."""

    known: dict[str, tuple[str, dict[int, list[Record]]]] = {}

    def write(writer: Client) -> tuple[str, dict[int, list[Record]]]:
        if writer.name in known:
            return known[writer.name]
        topic = make_topic(f"written-by-{writer.name}", partitions=len(CODECS))
        expected = {}
        for partition, codec in enumerate(CODECS):
            if codec in writer.codecs():
                samples = [record for record in map(writer.writable, SAMPLES) if record is not None]
                writer.produce(address, topic, partition, samples, codec=codec)
                expected[partition] = samples
        known[writer.name] = topic, expected
        return topic, expected

    return write


def test_reads_what_another_client_wrote(
    address: str, written_by: WrittenBy, writer: Client, reader: Client
) -> None:
    topic, expected = written_by(writer)
    if not set(writer.codecs()) <= set(reader.codecs()):
        pytest.skip(f"{reader.name} here opens only {', '.join(reader.codecs())}")
    received = reader.consume(address, topic, sum(map(len, expected.values())))
    for partition, records in expected.items():
        here = [found for found in received if found.partition == partition]
        assert [found.offset for found in here] == list(range(len(records))), CODECS[partition]
        assert [
            _comparable(found, sent) for found, sent in zip(here, records, strict=True)
        ] == records


def _comparable(found: Received, sent: Record) -> Record:
    """A writer that cannot choose the timestamp leaves it open."""
    return replace(found.record, timestamp_ms=-1) if sent.timestamp_ms == -1 else found.record
