"""Topics for a run: created through the wire client, so that every server is asked in the same way."""

import time
from typing import Self

from headrace.client.connection import Connection
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

READY_S = 120.0
METADATA_VERSION = 9  # names topics
DELETE_VERSION = 5
LIST_OFFSETS_VERSION = 5
_LATEST = -1


def create(port: int, name: str, *, partitions: int = 1, replication_factor: int = 1) -> None:
    """Create a topic and wait until every partition is served by its leader and has all its replicas in sync."""
    wish = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication_factor
    )
    with Connection("127.0.0.1", port, timeout_s=READY_S) as connection:
        answer = connection.send(CreateTopicsRequest(topics=[wish], timeout_ms=60_000), 5)
        if answer.topics[0].error_code:
            raise RuntimeError(f"{name} is not created: error code {answer.topics[0].error_code}")
        deadline = time.monotonic() + READY_S
        while not (
            _is_ready(partitions_of(connection, name), partitions, replication_factor)
            and records_in(port, name) == 0  # None while one who should lead does not do so yet
        ):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} has no leaders after {READY_S:g} s")
            time.sleep(0.02)


def records_in(port: int, name: str) -> int | None:
    """How many records all partitions hold, asked of their leaders; None if one of them cannot tell."""
    with Connection("127.0.0.1", port, timeout_s=READY_S) as connection:
        ports = {broker.node_id: broker.port for broker in _metadata(connection, name).brokers}
        led: dict[int, list[int]] = {}
        for partition in partitions_of(connection, name):
            led.setdefault(partition.leader_id, []).append(partition.partition_index)
    total = 0
    for leader, indexes in led.items():
        if leader not in ports:
            return None
        with Connection("127.0.0.1", ports[leader], timeout_s=READY_S) as connection:
            asked = [
                ListOffsetsPartition(partition_index=index, timestamp=_LATEST) for index in indexes
            ]
            request = ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)]
            )
            answers = connection.send(request, LIST_OFFSETS_VERSION).topics[0].partitions
        if any(answer.error_code for answer in answers):
            return None
        total += sum(answer.offset for answer in answers)
    return total


class Tail:
    """The end of a topic's only partition, looked at again and again over one connection."""

    def __init__(self, port: int, name: str) -> None:
        self._connection = Connection("127.0.0.1", port, timeout_s=READY_S)
        asked = ListOffsetsPartition(partition_index=0, timestamp=_LATEST)
        self._request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[asked])]
        )

    def __enter__(self) -> Self:
        self._connection.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def end_offset(self) -> int:
        answer = self._connection.send(self._request, LIST_OFFSETS_VERSION)
        return answer.topics[0].partitions[0].offset


def insist_on(port: int, name: str, records: int) -> None:
    """A broker that is fast because it loses records is not fast."""
    found = records_in(port, name)
    if found != records:
        raise RuntimeError(f"{name} holds {found} records, {records} were acknowledged")


def delete(port: int, name: str) -> None:
    with Connection("127.0.0.1", port, timeout_s=READY_S) as connection:
        connection.send(DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), DELETE_VERSION)


def partitions_of(connection: Connection, name: str) -> list[MetadataResponsePartition]:
    return list(_metadata(connection, name).topics[0].partitions)


def _metadata(connection: Connection, name: str) -> MetadataResponse:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    return connection.send(request, METADATA_VERSION)


def brokers_known_to(port: int) -> int:
    """How many brokers one of them tells of."""
    with Connection("127.0.0.1", port, timeout_s=READY_S) as connection:
        return len(connection.send(MetadataRequest(topics=[]), METADATA_VERSION).brokers)


def _is_ready(
    partitions: list[MetadataResponsePartition], count: int, replication_factor: int
) -> bool:
    return len(partitions) == count and all(
        partition.leader_id >= 0 and len(partition.isr_nodes) == replication_factor
        for partition in partitions
    )
