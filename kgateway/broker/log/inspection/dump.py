"""
Shows the files of a log, a line for each batch, record or entry, whoever wrote them.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any

from kgateway.broker.log.data_folder.checkpoints import CLEANED_OFFSETS, LOG_STARTS, SETTLED, SYNCED
from kgateway.broker.log.data_folder.config_file import CONFIGS
from kgateway.broker.log.data_folder.meta_properties import META
from kgateway.broker.log.data_folder.partition_folder import METADATA
from kgateway.broker.log.data_folder.producer_ids import PRODUCER_IDS
from kgateway.broker.log.data_folder.start_file import START
from kgateway.broker.log.data_folder.state_snapshots import STATE
from kgateway.broker.log.data_folder.topic_journal import TOPICS
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.inspection.log_paths import NoLog
from kgateway.broker.log.segments.batch_scan import Damage
from kgateway.broker.log.segments.damage import base_of, header_at, walk
from kgateway.broker.log.segments.file_names import DELETED_SUFFIX, LOG, file_name, offsets_of
from kgateway.broker.log.segments.index import INDEX, OFFSETS, TIME_INDEX, TIMES
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.broker.partition.producer_snapshot import SNAPSHOT, decode_snapshot
from kgateway.records.batch import Batch, BatchHeader
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.wire.errors import Malformed

_BATCH = "{:<17} {:>10} {:>8} {:<6} {:<24} {:>9} {:<16} {:<4} {:>5} {}"
_HEADINGS = ("OFFSETS", "BYTE", "SIZE", "CODEC", "FROM", "TO", "PRODUCER", "FLAG", "EPOCH", "CRC")
_SNAPSHOT = "{:>19} {:>5} {:>19} {:>19} {:<24}"
_SNAPSHOT_HEADINGS = ("PRODUCER", "EPOCH", "SEQUENCES", "OFFSETS", "TIME")
_OFFSETS = {SYNCED, SETTLED, LOG_STARTS, CLEANED_OFFSETS}
_TEXTS = {EPOCH_FILE, METADATA, META, START, TOPICS, CONFIGS, PRODUCER_IDS} | _OFFSETS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME = "-"


@dataclass(frozen=True, slots=True)
class DumpLine:
    """
    A line for people, and what it says for programs, a record apart; headings say nothing.
    """

    text: str
    fields: dict[str, Any] = field(default_factory=dict)
    record: Record | None = None


Lines = Iterator[DumpLine]


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """
    The wanted part of a log: from an offset on, this many batches, or records if these are shown.
    """

    records: bool = False
    start: int = 0
    limit: int = sys.maxsize


def dump(path: Path, disk: Disk, wanted: DumpRequest) -> Lines:
    """
    The lines of one file. Raises NoLog if it is of an unknown kind, OSError if it cannot be read.
    """
    for fits, lines in _KINDS:
        if fits(path.name.removesuffix(DELETED_SUFFIX)):
            return lines(path, disk, wanted)
    path.stat()  # OSError if there is none
    raise NoLog(f"{path} is not a file of a log; name a .log, an index, a snapshot or a leader epoch file")


def dump_partition(folder: Path, disk: Disk, wanted: DumpRequest) -> Lines:
    """
    The lines of all segments in a partition's folder that have a wanted part.
    """
    bases, sizes = segments(folder, disk), disk.names(folder)
    left = wanted.limit
    for base, following in zip(bases, [*bases[1:], wanted.start + 1], strict=False):
        if following > wanted.start and left > 0:
            path = folder / file_name(base, LOG)
            if not sizes[path.name]:
                yield DumpLine(f"{path}: empty")
                continue
            yield DumpLine(f"{path}:")
            left = yield from _log(path, disk, replace(wanted, limit=left))


def segments(folder: Path, disk: Disk) -> list[int]:
    """
    The base offsets of the segments in a folder; none if it is not the folder of a partition.
    """
    names = disk.names(folder) if folder.is_dir() else {}
    return offsets_of(names, LOG)


def _log(path: Path, disk: Disk, wanted: DumpRequest) -> Generator[DumpLine, None, int]:
    base_offset = base_of(path)
    yield DumpLine(_BATCH.format(*_HEADINGS))
    left, position = wanted.limit, 0
    file = disk.open(path)
    try:
        for found in walk(file.read, file.size, base_offset):
            if left <= 0:
                break
            if isinstance(found, Damage):
                yield from _damage(found, header_at(file.read, found.position, file.size))
                left -= 1
                position = found.position + found.size
                continue
            header = found.header
            if header.last_offset >= wanted.start:
                yield _row(header, position, is_whole=True)
                shown = list(_records(found, wanted, left)) if wanted.records else []
                yield from shown
                left -= max(len(shown), 1)
            position += header.size
    finally:
        file.close()
    return left


def _damage(damage: Damage, header: BatchHeader | None) -> Lines:
    if header and not damage.torn:
        yield _row(header, damage.position, is_whole=False)
    text = f"  byte {damage.position}, {damage.size} bytes: {damage.reason}"
    yield DumpLine(text, {"byte": damage.position, "size": damage.size, "problem": damage.reason})


def _records(batch: Batch, wanted: DumpRequest, left: int) -> Lines:
    try:
        told = (_record(record) for record in records(batch) if record.offset >= wanted.start)
        yield from islice(told, left)
    except Malformed as error:
        yield DumpLine(f"  the records of this batch cannot be read: {error}", {"problem": str(error)})


def _row(header: BatchHeader, position: int, *, is_whole: bool) -> DumpLine:
    number, has_producer = header.attributes & 7, header.producer_id >= 0
    codec = Codec(number).name.lower() if number <= Codec.ZSTD else f"({number})"
    text = _BATCH.format(
        f"{header.base_offset}-{header.last_offset}",
        position,
        header.size,
        codec,
        _time(header.base_timestamp),
        _span(header.max_timestamp - header.base_timestamp) if header.max_timestamp >= 0 else _NO_TIME,
        f"{header.producer_id}/{header.producer_epoch}/{header.base_sequence}" if has_producer else "-",
        ("T" if header.is_transactional else "") + ("C" if header.is_control else "") or "-",
        header.partition_leader_epoch,
        "ok" if is_whole else "BAD",
    )
    return DumpLine(
        text,
        {
            "base_offset": header.base_offset,
            "last_offset": header.last_offset,
            "byte": position,
            "size": header.size,
            "codec": codec,
            "base_timestamp": header.base_timestamp,
            "max_timestamp": header.max_timestamp,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "transactional": header.is_transactional,
            "control": header.is_control,
            "leader_epoch": header.partition_leader_epoch,
            "whole": is_whole,
        },
    )


def _record(record: Record) -> DumpLine:
    headers = " ".join(f"{header.key}={_text(header.value)}" for header in record.headers)
    line = f"  {record.offset:>15} {_time(record.timestamp):<24} {_text(record.key)} {_text(record.value)}"
    return DumpLine(f"{line} [{headers}]" if headers else line, record=record)


def _text(data: bytes | None) -> str:
    return "null" if data is None else f'"{data.decode(errors="backslashreplace")}"'


def _time(timestamp: int) -> str:
    try:
        when = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return str(timestamp)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03d}Z" if timestamp >= 0 else _NO_TIME


def _span(duration_ms: int) -> str:
    return f"{duration_ms:+}ms" if abs(duration_ms) < 100_000 else f"{duration_ms / 1000:+.0f}s"


def _offsets(path: Path, disk: Disk, wanted: DumpRequest) -> Lines:
    base = base_of(path)
    yield DumpLine(f"{'OFFSET':>19} {'BYTE':>10}")
    for offset, position in _unpacked(OFFSETS, path, disk, wanted):
        yield DumpLine(f"{base + offset:>19} {position:>10}", {"offset": base + offset, "byte": position})


def _times(path: Path, disk: Disk, wanted: DumpRequest) -> Lines:
    base = base_of(path)
    yield DumpLine(f"{'OFFSET':>19} LARGEST TIME SO FAR")
    for timestamp, offset in _unpacked(TIMES, path, disk, wanted):
        text = f"{base + offset:>19} {_time(timestamp)}"
        yield DumpLine(text, {"offset": base + offset, "timestamp": timestamp})


def _unpacked(entry: Struct, path: Path, disk: Disk, wanted: DumpRequest) -> Iterator[tuple[int, int]]:
    data = disk.read(path)
    for number, found in enumerate(entry.iter_unpack(data[: len(data) - len(data) % entry.size])):
        if number >= wanted.limit:
            return
        yield found[0], found[1]


def _snapshot(path: Path, disk: Disk, wanted: DumpRequest) -> Lines:
    data = disk.read(path)
    try:
        snapshot = decode_snapshot(data)
    except Malformed as error:
        yield DumpLine(f"it cannot be read: {error}", {"problem": str(error)})
        return
    yield DumpLine(_SNAPSHOT.format(*_SNAPSHOT_HEADINGS).rstrip())
    for entry in snapshot.producer_entries:
        sequences = entry.last_sequence - entry.offset_delta, entry.last_sequence
        offsets = entry.last_offset - entry.offset_delta, entry.last_offset
        text = _SNAPSHOT.format(
            entry.producer_id,
            entry.producer_epoch,
            "{}-{}".format(*sequences),
            "{}-{}".format(*offsets),
            _time(entry.timestamp),
        )
        fields = {
            "producer_id": entry.producer_id,
            "producer_epoch": entry.producer_epoch,
            "sequences": sequences,
            "offsets": offsets,
            "timestamp": entry.timestamp,
        }
        yield DumpLine(text, fields)


def _lines(path: Path, disk: Disk, wanted: DumpRequest) -> Lines:
    for line in disk.read(path).decode(errors="backslashreplace").splitlines():
        yield DumpLine(line, {"line": line})


_Dump = Callable[[Path, Disk, DumpRequest], Lines]
_KINDS: list[tuple[Callable[[str], bool], _Dump]] = [
    (lambda name: name.endswith(INDEX), _offsets),
    (lambda name: name.endswith(TIME_INDEX), _times),
    (lambda name: name.endswith(SNAPSHOT), _snapshot),
    (_TEXTS.__contains__, _lines),
    (lambda name: name.startswith(STATE) or f"{LOG}." in name or name.endswith(LOG), _log),
]
