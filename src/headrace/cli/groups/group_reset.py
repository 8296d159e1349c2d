"""`consumer-groups --reset-offsets` and `--delete-offsets`: where groups go on reading."""

from __future__ import annotations

import argparse
import csv
import io
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from headrace.cli.shell.command_line import Failure, UsageError, tell
from headrace.cli.shell.output import MISSING, print_json, wants_json, width
from headrace.client.admin.admin import Admin
from headrace.client.admin.group_offsets import (
    alter_offsets,
    committed_offsets,
    delete_offsets,
)
from headrace.client.admin.groups import describe_group
from headrace.client.admin.partitions import FoundOffset, OffsetSpec, list_offsets
from headrace.client.admin.topics import partitions_of
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused, refusal_of

Offsets = dict[TopicPartition, int]

_DURATION = re.compile(
    r"([+-])?P(?:([+-]?\d+)D)?(?:T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_DATETIME = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?(?:\d{2})?)?"
)


def reset(admin: Admin, options: argparse.Namespace, group_ids: Iterable[str]) -> None:
    """Work out the new offsets, set them with `--execute`, and print them."""
    results = {group_id: _reset_group(admin, options, group_id) for group_id in group_ids}
    if wants_json(options):
        print_json(
            [
                {"group": group, "topic": each.topic, "partition": each.partition, "offset": offset}
                for group, offsets in results.items()
                for each, offset in offsets.items()
            ]
        )
    elif options.export:
        print(_csv(results, with_group=len(options.group or ()) != 1))
    else:
        _print_reset(results)


def _reset_group(admin: Admin, options: argparse.Namespace, group_id: str) -> Offsets:
    try:
        state = describe_group(admin, group_id).state
    except Refused as refused:
        if refused.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        state = "Dead"  # resetting is a way to make a group
    if state not in ("Empty", "Dead"):
        print(
            f"\nError: Assignments can only be reset if the group '{group_id}' is inactive,"
            f" but the current state is {state}."
        )
        return {}
    offsets = dict(sorted(_new_offsets(admin, options, group_id).items()))
    if options.execute and offsets:
        alter_offsets(admin, group_id, offsets)
    return offsets


def _new_offsets(admin: Admin, options: argparse.Namespace, group_id: str) -> Offsets:
    if options.from_file is not None:
        planned = _plan(options.from_file, options.group or [])
        if group_id not in planned:
            print(f"\nError: No reset plan for group {group_id} found.")
            return {}
        return _within_log(admin, planned[group_id])
    partitions = _scope(admin, options, group_id)
    if options.to_current or options.shift_by is not None:
        return _from_committed(admin, options, group_id, partitions)
    if options.to_offset is not None:
        return _within_log(admin, dict.fromkeys(partitions, options.to_offset))
    if options.to_earliest:
        return _places(admin, partitions, OffsetSpec.EARLIEST)
    if options.to_latest:
        return _places(admin, partitions, OffsetSpec.LATEST)
    if options.to_datetime is not None:
        return _at_time(admin, partitions, timestamp_of(options.to_datetime))
    now_ms = int(time.time() * 1000)
    return _at_time(admin, partitions, now_ms - milliseconds_of(options.by_duration))


def _from_committed(
    admin: Admin, options: argparse.Namespace, group_id: str, partitions: list[TopicPartition]
) -> Offsets:
    committed = {each: found.offset for each, found in committed_offsets(admin, group_id).items()}
    if options.to_current:
        missing = [each for each in partitions if each not in committed]
        kept = {each: committed[each] for each in partitions if each in committed}
        return kept | _places(admin, missing, OffsetSpec.LATEST)
    for partition in partitions:
        if partition not in committed:
            raise UsageError(
                f"Cannot shift offset for partition {partition} since there is no current committed offset"
            )
    return _within_log(admin, {each: committed[each] + options.shift_by for each in partitions})


def _scope(admin: Admin, options: argparse.Namespace, group_id: str) -> list[TopicPartition]:
    if options.all_topics:
        return sorted(committed_offsets(admin, group_id))
    chosen, refused = named_partitions(admin, options.topic)
    for refusal in refused.values():
        raise Refused.of(refusal)
    return chosen


def named_partitions(
    admin: Admin, texts: Iterable[str]
) -> tuple[list[TopicPartition], dict[str, Refusal]]:
    """`topic` and `topic:0,1` as partitions that exist; refusals by topic."""
    chosen: list[TopicPartition] = []
    whole = []
    for text in texts:
        if ":" not in text:
            whole.append(text)
            continue
        topic, _, numbers = text.partition(":")
        for number in numbers.split(","):
            if not number.isdecimal():
                raise UsageError(f"Invalid partition '{number}' specified in topic arg '{text}''")
            chosen.append(TopicPartition(topic, int(number)))
    known = partitions_of(admin, {*whole, *(each.topic for each in chosen)})
    refused = {topic: why for topic, why in known.items() if isinstance(why, Refusal)}
    missing = refusal_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert missing is not None
    for partition in chosen:
        numbers_there = known.get(partition.topic)
        if isinstance(numbers_there, list) and partition.partition not in numbers_there:
            refused[partition.topic] = missing
    for topic in whole:
        found = known.get(topic, [])
        if isinstance(found, list):
            chosen += [TopicPartition(topic, number) for number in found]
    return [each for each in chosen if each.topic not in refused], refused


def _places(admin: Admin, partitions: Iterable[TopicPartition], place: int) -> Offsets:
    offsets = {}
    for partition, found in list_offsets(admin, partitions, place).items():
        if isinstance(found, Refusal):
            raise Refused.of(found)
        offsets[partition] = found.offset
    return offsets


def _at_time(admin: Admin, partitions: list[TopicPartition], timestamp: int) -> Offsets:
    found = _places(admin, partitions, timestamp)
    beyond = [partition for partition, offset in found.items() if offset < 0]
    for partition in beyond:
        print(
            f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty."
            " Falling back to latest known offset."
        )
    return found | _places(admin, beyond, OffsetSpec.LATEST)


def _within_log(admin: Admin, wanted: Offsets) -> Offsets:
    first = list_offsets(admin, wanted, OffsetSpec.EARLIEST)
    end = list_offsets(admin, wanted, OffsetSpec.LATEST)
    offsets = {}
    for partition, offset in wanted.items():
        low, high = first[partition], end[partition]
        for answer in (low, high):
            if isinstance(answer, Refusal):
                raise Refused.of(answer)
        assert isinstance(low, FoundOffset)
        assert isinstance(high, FoundOffset)
        allowed = max(low.offset, min(offset, high.offset))
        if allowed != offset:
            side = "higher than latest" if offset > allowed else "lower than earliest"
            tell(
                f"WARN New offset ({offset}) is {side} offset for topic partition {partition}."
                f" Value will be set to {allowed}."
            )
        offsets[partition] = allowed
    return offsets


def _plan(path: str, groups: list[str]) -> dict[str, Offsets]:
    """A CSV file with topic,partition,offset for one group, or group,topic,partition,offset."""
    plan: dict[str, Offsets] = {}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
        for row in rows:
            group, topic, partition, offset = (groups[0], *row) if len(row) == 3 else row
            plan.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, IndexError) as wrong:
        raise Failure(
            f"{path} is no reset plan", hint="its lines are topic,partition,offset"
        ) from wrong
    return plan


def _csv(results: Mapping[str, Offsets], *, with_group: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, offsets in results.items():
        for partition, offset in offsets.items():
            row = (partition.topic, partition.partition, offset)
            writer.writerow((group, *row) if with_group else row)
    return text.getvalue()


def _print_reset(results: Mapping[str, Offsets]) -> None:
    groups = width(15, list(results))
    topics = width(15, [each.topic for offsets in results.values() for each in offsets])
    form = f"\n{{:<{groups}}} {{:<{topics}}} {{:<10}} {{}}"
    if results:
        print(form.format("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), end="")
    for group, offsets in results.items():
        for partition, offset in offsets.items():
            print(form.format(group, partition.topic, partition.partition, offset), end="")
    print()


def timestamp_of(text: str) -> int:
    """Milliseconds of `YYYY-MM-DDThh:mm[:ss[.sss]][zone]`; without a zone it is UTC."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise UsageError(f"--to-datetime: '{text}' is not of the form YYYY-MM-DDThh:mm:ss.sss")
    moment = datetime.fromisoformat(match[1] + (match[2] or "").replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def milliseconds_of(text: str) -> int:
    """The length of an ISO 8601 duration of days, hours, minutes and seconds."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()[1:]):
        raise UsageError(f"--by-duration: '{text}' is not of the form PnDTnHnMnS")
    days, hours, minutes = (int(part or 0) for part in match.groups()[1:4])
    seconds = float(match[5] or 0)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return int(total * 1000) * (-1 if match[1] == "-" else 1)


def delete(admin: Admin, options: argparse.Namespace) -> None:
    """Forget what one group has committed for topics."""
    group_id = options.group[-1]
    chosen, unknown = named_partitions(admin, options.topic)
    results: dict[TopicPartition, Refusal | None] = {
        TopicPartition(topic, -1): why for topic, why in unknown.items()
    }
    try:
        results |= delete_offsets(admin, group_id, chosen)
        failed = any(results[each] for each in chosen)
        headline = (
            "\nError: Encountered some partition-level error, see the follow-up details."
            if failed
            else f"Request succeeded for deleting offsets from group {group_id}."
        )
    except Refused as refused:
        results |= dict.fromkeys(chosen, refused.refusal)
        headline = f"\nError: {refused}"
    if wants_json(options):
        print_json(
            [
                {
                    "topic": each.topic,
                    "partition": each.partition if each.partition >= 0 else None,
                    "error": None if why is None else str(why),
                }
                for each, why in results.items()
            ]
        )
        return
    print(headline)
    form = f"\n{{:<{width(15, [each.topic for each in results])}}} {{:<10}} {{:<15}}"
    print(form.format("TOPIC", "PARTITION", "STATUS"), end="")
    for each in sorted(results, key=lambda each: f"{each.topic}{each.partition}"):
        number = each.partition if each.partition >= 0 else MISSING
        why = results[each]
        status = "Successful" if why is None else f"Error: {why.error_code.name}: {why}"
        print(form.format(each.topic, number, status), end="")
    print()
