"""Appends to a log until it is killed: `python -m tests.log_process.appender`, driven by lines on stdin.

A line `directory leader-epoch recovery-point` forks a child, so that starting one costs a millisecond. The child opens
the log and appends for ever, and after each append that returned it writes the batch's base offset to stdout, where
`started PID` stood before and `dead` will stand after it.
"""

import os
import sys
from random import Random

from headrace.log.files.os_disk import OsDisk
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.records.compression import Codec
from tests.support.log_samples import NOW_MS, append, open_sample

CONFIG = LogConfig(segment_bytes=100_000, index_interval_bytes=500, flush_messages=2000)


def batch_at(offset: int) -> bytearray:
    """The batch that every appender writes at this offset, unstamped."""
    chance = Random(offset)
    records = [
        Record(number, NOW_MS + offset, b"key", chance.randbytes(chance.randint(0, 400)))
        for number in range(chance.randint(1, 5))
    ]
    options = BatchOptions(
        codec=chance.choice(list(Codec)), producer_id=1, producer_epoch=0, base_sequence=offset
    )
    return build_batch(records, options)


def open_appended(directory: str, recovery_point: int) -> PartitionLog:
    """The log, as after a crash."""
    return open_sample(OsDisk(), CONFIG, directory=directory, recovery_point=recovery_point)


def append_for_ever(directory: str, leader_epoch: int, recovery_point: int) -> None:
    log = open_appended(directory, recovery_point)
    while True:
        appended = append(log, batch_at(log.log_end_offset), leader_epoch=leader_epoch)
        os.write(1, b"%d\n" % appended.base_offset)


def main() -> None:
    for line in sys.stdin:
        directory, leader_epoch, recovery_point = line.rsplit(maxsplit=2)
        child = os.fork()
        if child == 0:
            append_for_ever(directory, int(leader_epoch), int(recovery_point))
        os.write(1, b"started %d\n" % child)
        os.waitpid(child, 0)
        os.write(1, b"dead\n")


if __name__ == "__main__":
    main()
