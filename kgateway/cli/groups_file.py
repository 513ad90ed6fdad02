"""
Offsets in a file: a table as Kafka's tools export it, or what `kgateway groups describe --json` has printed.

    topic,partition,offset
    group,topic,partition,offset
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgateway.cli.refused import Refused
from kgateway.client.offsets import Partition

_FORMS = (3, 4)  # cells of a line
_OFFSET_MAX = (1 << 63) - 1
_INDEX, _OFFSET = re.compile("[0-9]{1,10}"), re.compile("[0-9]{1,19}")

_Row = tuple[str, Partition, int]  # with its place, for the operator


def offsets_in(file: Path, group_id: str) -> dict[Partition, int]:
    """
    The offsets of the group.
    """
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    rows = _described(text, group_id, file) if text.lstrip().startswith("{") else _exported(text, group_id, file)
    offsets: dict[Partition, int] = {}
    for place, partition, offset in rows:
        if partition in offsets:  # which of the two is meant only the operator knows
            raise Refused(f"{place}: partition {partition} is there for the second time")
        offsets[partition] = offset
    if not offsets:
        raise Refused(f"{file} has no offsets of group {group_id}")
    return offsets


def _exported(text: str, group_id: str, file: Path) -> Iterator[_Row]:
    for number, cells in enumerate(_lines(text, file), 1):
        if not cells or (len(cells) == max(_FORMS) and cells[0] != group_id):
            continue
        *_, topic, index, offset = cells if len(cells) in _FORMS else ("", "", "")
        if not _INDEX.fullmatch(index.strip()) or not _OFFSET.fullmatch(offset.strip()) or int(offset) > _OFFSET_MAX:
            raise Refused(f"{file}, line {number}: {','.join(cells)[:100]!r} is not TOPIC,PARTITION,OFFSET")
        yield f"{file}, line {number}", Partition(topic, int(index)), int(offset)


def _lines(text: str, file: Path) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    try:
        yield from reader
    except csv.Error as error:
        raise Refused(f"{file}, line {reader.line_num}: {error}") from error


def _described(text: str, group_id: str, file: Path) -> Iterator[_Row]:
    try:
        groups: list[dict[str, Any]] = json.loads(text)["groups"]
        for group in groups:
            if group["group"] == group_id:
                yield from (
                    (str(file), Partition(str(row["topic"]), int(row["partition"])), int(row["committed"]))
                    for row in group["partitions"]
                    if row["committed"] is not None
                )
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{file} is not what `kgateway groups describe --json` prints") from error
