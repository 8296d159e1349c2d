"""The floor: a bare event-loop server that only writes what it is sent to a file, or serves it from one.

It answers just enough of Kafka's protocol for the same clients to run against it: ApiVersions, Metadata, CreateTopics,
DeleteTopics, InitProducerId, and Produce and Fetch for one partition a request. It checks nothing, keeps no index and no
metadata on disk, and knows only partitions whose batches are all alike. What Headrace needs beyond it is what being a
broker costs.
"""

import asyncio
import os
import sys
from pathlib import Path
from struct import Struct
from typing import cast

from headrace.records.batch_view import HEADER_BYTES
from headrace.wire.api_keys import ApiKey, request_class
from headrace.wire.codec import Piece, decode, encode_pieces
from headrace.wire.headers import (
    decode_request_header,
    encode_response_start,
    response_header_has_tags,
)
from headrace.wire.message import Response
from headrace.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from headrace.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from headrace.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headrace.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.primitives import read_unsigned_varint, unsigned_varint

OFFERED = {
    ApiKey.PRODUCE: (3, 9),
    ApiKey.FETCH: (4, 12),
    ApiKey.METADATA: (0, 9),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.LIST_OFFSETS: (1, 5),
    ApiKey.CREATE_TOPICS: (2, 5),
    ApiKey.DELETE_TOPICS: (1, 5),
    ApiKey.INIT_PRODUCER_ID: (0, 4),
}
LAST_OFFSET_DELTA_POSITION = 23
BUFFER_BYTES = 128 * 1024
PRODUCE_KEY = int(ApiKey.PRODUCE)
_INT32, _INT64 = Struct(">i"), Struct(">q")
# After the partition's number: no error, offset 0, no append time, log start 0, no record errors, no text, no tags;
# then the topic's tags, no throttling, the answer's tags.
_TAKEN = bytes(2) + bytes(8) + _INT64.pack(-1) + bytes(8) + b"\1\0\0" + b"\0" + bytes(4) + b"\0"


class BatchFile:
    """A file of batches that are all as long, with as many records, as the first one."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._batch_bytes = 0
        self._batch_records = 1
        self._end = 0
        self._next_offset = 0

    def append(self, batch: memoryview) -> None:
        """Stamp the offset where the batch lies, and write it from there."""
        records = _INT32.unpack_from(batch, LAST_OFFSET_DELTA_POSITION)[0] + 1
        if not self._end:
            self._batch_bytes, self._batch_records = len(batch), records
        _INT64.pack_into(batch, 0, self._next_offset)
        os.write(self._descriptor, batch)
        self._end += len(batch)
        self._next_offset += records

    def read(self, offset: int, max_bytes: int) -> bytes:
        start = offset // self._batch_records * self._batch_bytes
        whole = max(1, max_bytes // max(HEADER_BYTES, self._batch_bytes)) * self._batch_bytes
        return os.pread(self._descriptor, min(whole, self._end - start), start)

    @property
    def end_offset(self) -> int:
        return self._next_offset


class Floor:
    """Topics and their files, and the answer to each request."""

    def __init__(self, port: int, directory: Path) -> None:
        self._port = port
        self._directory = directory
        self._counts: dict[str, int] = {}
        self._partitions: dict[tuple[str, int], BatchFile] = {}

    def answer(self, frame: memoryview) -> list[Piece]:
        """The whole answer to a request, with its length, in pieces."""
        header = decode_request_header(frame)
        key, version = header.api_key, header.api_version
        if key == PRODUCE_KEY and version == 9:
            body: list[Piece] = [self._produce(frame, header.size)]
        else:
            asked = decode(request_class(key), version, frame, header.size)
            body = encode_pieces(self._control(asked), version)
        has_tags = response_header_has_tags(key, version)
        body_bytes = sum(map(len, body))
        return [
            encode_response_start(header.correlation_id, body_bytes, has_tags=has_tags),
            *body,
        ]

    def _produce(self, frame: memoryview, position: int) -> bytes:
        """Produce v9 with one partition, read by hand: names and lengths are all that matters."""
        length, position = read_unsigned_varint(frame, position)  # transactional id, or null
        position += max(0, length - 1) + 2 + 4 + 1
        length, position = read_unsigned_varint(frame, position)
        name = bytes(frame[position : position + length - 1])
        position += length  # the name and, in one byte, how many partitions
        index = bytes(frame[position : position + 4])
        length, position = read_unsigned_varint(frame, position + 4)
        batch = frame[position : position + length - 1]
        self._partition(name.decode(), _INT32.unpack(index)[0]).append(batch)
        return b"\2" + unsigned_varint(len(name) + 1) + name + b"\2" + index + _TAKEN

    def _partition(self, topic: str, index: int) -> BatchFile:
        found = self._partitions.get((topic, index))
        if found is None:
            path = self._directory / f"{topic}-{index}"
            found = self._partitions[topic, index] = BatchFile(path)
        return found

    def _control(self, asked: object) -> Response:
        if isinstance(asked, FetchRequest):
            return self._fetch(asked)
        if isinstance(asked, MetadataRequest):
            return self._metadata(asked)
        if isinstance(asked, CreateTopicsRequest):
            for topic in asked.topics:
                self._counts[topic.name] = topic.num_partitions
            created = [CreatableTopicResult(name=topic.name) for topic in asked.topics]
            return CreateTopicsResponse(topics=created)
        if isinstance(asked, DeleteTopicsRequest):
            return self._delete(asked)
        if isinstance(asked, ListOffsetsRequest):
            return self._list_offsets(asked)
        if isinstance(asked, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=1, producer_epoch=0)
        keys = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in OFFERED.items()
        ]
        return ApiVersionsResponse(api_keys=keys)

    def _fetch(self, asked: FetchRequest) -> FetchResponse:
        answers = []
        left = asked.max_bytes
        for topic in asked.topics:
            found = []
            for each in topic.partitions:
                partition = self._partition(topic.topic, each.partition)
                data = partition.read(each.fetch_offset, min(left, each.partition_max_bytes))
                left -= len(data)
                found.append(
                    PartitionData(
                        partition_index=each.partition,
                        high_watermark=partition.end_offset,
                        records=data,
                    )
                )
            answers.append(FetchableTopicResponse(topic=topic.topic, partitions=found))
        return FetchResponse(responses=answers)

    def _metadata(self, asked: MetadataRequest) -> MetadataResponse:
        names = [topic.name for topic in asked.topics or () if topic.name is not None]
        topics = [
            MetadataResponseTopic(
                name=name,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                    )
                    for index in range(self._counts.get(name, 0))
                ],
            )
            for name in names
        ]
        broker = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self._port)
        return MetadataResponse(brokers=[broker], controller_id=1, topics=topics)

    def _list_offsets(self, asked: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=self._partition(topic.name, each.partition_index).end_offset,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in asked.topics
            ]
        )

    def _delete(self, asked: DeleteTopicsRequest) -> DeleteTopicsResponse:
        for name in asked.topic_names:
            for index in range(self._counts.pop(name, 0)):
                self._partitions.pop((name, index), None)
                (self._directory / f"{name}-{index}").unlink(missing_ok=True)
        return DeleteTopicsResponse(
            responses=[DeletableTopicResult(name=name) for name in asked.topic_names]
        )


class Connection(asyncio.BufferedProtocol):
    """One client: bytes are received into one buffer and handled where they lie; the answers to what one read brought
    leave in one write.
    """

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._end = 0
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one, by duck

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._end == len(self._buffer):
            self._buffer = memoryview(bytearray(self._buffer) + bytearray(3 * self._end))
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        start, answers = 0, list[Piece]()
        while self._end - start >= 4:
            stop = start + 4 + _INT32.unpack_from(self._buffer, start)[0]
            if stop > self._end:
                break
            answers += self._floor.answer(self._buffer[start + 4 : stop])
            start = stop
        rest = self._end - start
        if start and rest:
            self._buffer[:rest] = self._buffer[start : self._end]
        self._end = rest
        if answers and self._transport is not None:
            self._transport.writelines(answers)


async def serve(port: int, directory: Path) -> None:
    floor = Floor(port, directory)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(floor), "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    import uvloop

    properties = dict(
        line.split("=", 1) for line in Path(sys.argv[1]).read_text().splitlines() if line
    )
    directory = Path(properties["log.dirs"])
    directory.mkdir(parents=True, exist_ok=True)
    uvloop.run(serve(int(properties["port"]), directory))


if __name__ == "__main__":
    main()
