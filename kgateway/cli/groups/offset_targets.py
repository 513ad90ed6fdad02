"""
Where a group is to go on reading: the offsets that options or a file name, held against what each log has.

A file is a table as Kafka's tools export it, or what `kgateway groups describe --json` has printed:

    topic,partition,offset
    group,topic,partition,offset
"""

import csv
import io
import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kgateway.cli.common import values
from kgateway.cli.common.errors import CommandError
from kgateway.cli.common.times import TIMES, iso, option_time_ms
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent, offsets_at
from kgateway.topic_partition import TopicPartition

_CELLS = (3, 4)  # of a line
_OFFSET_MAX = (1 << 63) - 1
_INDEX, _OFFSET = re.compile("[0-9]{1,10}"), re.compile("[0-9]{1,19}")

_Row = tuple[str, TopicPartition, int]  # with its place, for the operator


class Target(NamedTuple):
    """
    The new offset, with a note; without an offset the note says why there is none.
    """

    offset: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """
    A group's move in one partition, from the committed offset to the target; without a target nothing moves.
    """

    partition: TopicPartition
    committed: int | None
    target: int | None
    end: int | None
    note: str

    @property
    def lag(self) -> int | None:
        """
        How many records the group has left to read after the move.
        """
        return None if self.target is None or self.end is None else self.end - self.target


def plan(
    targets: Mapping[TopicPartition, Target],
    committed: Mapping[TopicPartition, int],
    extents: Mapping[TopicPartition, Extent],
) -> list[Move]:
    """
    The moves; each target lies within its log.
    """
    return [_move(one, targets[one], committed.get(one), extents.get(one)) for one in sorted(targets)]


def _move(partition: TopicPartition, target: Target, committed: int | None, extent: Extent | None) -> Move:
    if extent is None:
        return Move(partition, committed, None, None, "there is no such partition")
    if target.offset is None:
        return Move(partition, committed, None, extent.end, target.note)
    note = target.note
    if target.offset < extent.start:
        note = f"{target.offset} requested, but the log begins at {extent.start}"
    elif target.offset > extent.end:
        note = f"{target.offset} requested, but the log ends at {extent.end}"
    return Move(partition, committed, min(max(target.offset, extent.start), extent.end), extent.end, note)


def add_targets(parser: ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--to-earliest", action="store_true", help="to the first record")
    target.add_argument("--to-latest", action="store_true", help="to the end, after the last record")
    target.add_argument(
        "--to-time",
        "--to-datetime",
        metavar="TIME",
        type=partial(option_time_ms, instead="see --to-earliest"),
        help=f"to the first record since {TIMES}; UTC if no time zone is given",
    )
    target.add_argument("--to-offset", metavar="N", type=values.offset, help="to this offset")
    target.add_argument("--shift-by", metavar="N", type=int, help="by N from the committed offset; back if negative")
    target.add_argument(
        "--from-file",
        metavar="FILE",
        type=Path,
        help="to the offsets in a file: lines TOPIC,PARTITION,OFFSET, or the output of `describe --json`",
    )


def targets_of(
    options: Namespace,
    cluster: Cluster,
    committed: Mapping[TopicPartition, int],
    extents: Mapping[TopicPartition, Extent],
) -> dict[TopicPartition, Target]:
    if options.to_time is not None:
        return _at_time(options.to_time, cluster, extents)
    return {partition: _target(options, committed.get(partition), extent) for partition, extent in extents.items()}


def _target(options: Namespace, committed: int | None, extent: Extent) -> Target:
    if options.to_earliest:
        return Target(extent.start)
    if options.to_latest:
        return Target(extent.end)
    if options.to_offset is not None:
        return Target(options.to_offset)
    if committed is None:
        return Target(None, "no offset is committed to shift from")
    return Target(committed + options.shift_by)


def _at_time(time_ms: int, cluster: Cluster, extents: Mapping[TopicPartition, Extent]) -> dict[TopicPartition, Target]:
    positions = cluster.retry(partial(offsets_at, cluster, extents, time_ms))
    targets = {}
    for partition, extent in extents.items():
        position = positions.get(partition)
        if position is None or position.offset is None:
            targets[partition] = Target(extent.end, "no later record")
        else:
            note = "" if position.timestamp_ms is None else iso(position.timestamp_ms)
            targets[partition] = Target(position.offset, note)
    return targets


def offsets_in(file: Path, group_id: str) -> dict[TopicPartition, int]:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    rows = _described(text, group_id, file) if text.lstrip().startswith("{") else _exported(text, group_id, file)
    offsets: dict[TopicPartition, int] = {}
    for place, partition, offset in rows:
        if partition in offsets:  # which of the two is meant only the operator knows
            raise CommandError(f"{place}: partition {partition} appears twice")
        offsets[partition] = offset
    if not offsets:
        raise CommandError(f"{file} has no offsets of group {group_id}")
    return offsets


def _exported(text: str, group_id: str, file: Path) -> Iterator[_Row]:
    for number, cells in enumerate(_lines(text, file), 1):
        if not cells or (len(cells) == max(_CELLS) and cells[0] != group_id):
            continue
        *_, topic, index, offset = cells if len(cells) in _CELLS else ("", "", "")
        if not _INDEX.fullmatch(index.strip()) or not _OFFSET.fullmatch(offset.strip()) or int(offset) > _OFFSET_MAX:
            raise CommandError(f"{file}, line {number}: {','.join(cells)[:100]!r} is not TOPIC,PARTITION,OFFSET")
        yield f"{file}, line {number}", TopicPartition(topic, int(index)), int(offset)


def _lines(text: str, file: Path) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    try:
        yield from reader
    except csv.Error as error:
        raise CommandError(f"{file}, line {reader.line_num}: {error}") from error


def _described(text: str, group_id: str, file: Path) -> Iterator[_Row]:
    try:
        groups: list[dict[str, Any]] = json.loads(text)["groups"]
        for group in groups:
            if group["group"] == group_id:
                yield from (
                    (str(file), TopicPartition(str(row["topic"]), int(row["partition"])), int(row["committed"]))
                    for row in group["partitions"]
                    if row["committed"] is not None
                )
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{file} is not what `kgateway groups describe --json` prints") from error
