"""DescribeLogDirs (35), versions 1-5: the log directories of this broker, and what each log takes up.

v2 flexible · v3 error of the whole · v4 total and usable bytes of the volume · v5 cordoned directories; none is here.
Null topics are all. A log that moves to another directory is in both, there with its lag. A directory that is offline is listed with KAFKA_STORAGE_ERROR.
"""

from collections.abc import Collection, Mapping

from headrace.broker.requests.request_context import RequestContext
from headrace.errors import DiskFailed
from headrace.log.log_dirs import LogDir, LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(
    request: DescribeLogDirsRequest, context: RequestContext, *, log_dirs: LogDirs
) -> DescribeLogDirsResponse:
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    offline = [
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
        for path in log_dirs.offline
    ]
    online = [_directory(directory, wanted, log_dirs) for directory in log_dirs.online]
    return DescribeLogDirsResponse(results=[*online, *offline])


def _directory(
    directory: LogDir, wanted: Mapping[str, Collection[int]] | None, log_dirs: LogDirs
) -> DescribeLogDirsResult:
    try:
        usage = log_dirs.usage(directory)
    except DiskFailed:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for (topic, index), log in directory.logs.items():
        if wanted is None or index in wanted.get(topic, ()):
            size = DescribeLogDirsPartition(partition_index=index, partition_size=log.size)
            topics.setdefault(topic, []).append(size)
    for (topic, index), copy in directory.futures.items():
        if wanted is None or index in wanted.get(topic, ()):
            topics.setdefault(topic, []).append(_future(index, copy, log_dirs))
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        total_bytes=usage.total_bytes,
        usable_bytes=usage.usable_bytes,
    )


def _future(index: int, copy: PartitionLog, log_dirs: LogDirs) -> DescribeLogDirsPartition:
    original = log_dirs.get(copy.topic_partition)
    lag = 0 if original is None else max(0, original.log_end_offset - copy.log_end_offset)
    return DescribeLogDirsPartition(
        partition_index=index, partition_size=copy.size, offset_lag=lag, is_future_key=True
    )
