"""
How ledgers are stored: as messages of the topic `offset-mappings` in the namespace `kafka-system`.

The key says whose ledger it is, by topic id and the 32 slots of the partition in the ledger's own ring:

    byte  size
       0    16  topic id
      16     4  first slot, 32 times the partition's index
      20     4  last slot

The value is a part of it, of one section:

    byte  size
       0     1  version                1
       1     1  whether a message of the topic is a batch
       2     4  epoch of the leader
       6     8  Kafka's offset before which nothing counts any more
      14     8  nanoseconds of the generation
      22     4  start of the range that the cluster gave the partition
      26     4  stop of the range
      30     8  number of the first row
      38     4  how many rows there are
      42        Kafka's offsets of all rows, 8 bytes each; then SeaweedMQ's; then times; then largest timestamps
                spans, 4 bytes each
             4  CRC-32C of all before

Messages are replayed in their order. One that says nothing new changes nothing, be it a repetition. Otherwise its rows
replace those with their numbers, and all after them. Rows that do not follow those before are left out, because what is
between was lost, and so are those of a leader whose epoch was over; the log has the rest.
"""

import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.layout.topic_paths import SLOTS, RingRange, slots
from kgateway.broker.seaweedmq.ledger.ledger import COLUMN_TYPES, Columns, Ledger
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.uuids import SIZE, Uuid

NAMESPACE, TOPIC = "kafka-system", "offset-mappings"
VERSION = 1
ROWS_MAX = 4096  # in a message

_KEY = Struct(f">{SIZE}sii")
_HEAD = Struct(">BBiqqiiqi")
_CRC = Struct(">I")
_NOWHERE = -1, -1
_SWAPPED = sys.byteorder == "little"


class LedgerKey(NamedTuple):
    topic_id: Uuid
    partition: int


class LedgerPart(NamedTuple):
    batched: bool
    epoch: int
    start: int
    unix_time_ns: int
    part: RingRange
    first_row: int
    columns: Columns

    @property
    def stop(self) -> int:
        return self.first_row + len(self.columns[0])


@dataclass(slots=True)
class ReplayedLedger:
    """
    A ledger as its messages describe it, and the faults in them.
    """

    ledger: Ledger
    epoch: int
    faults: list[str] = field(default_factory=list)


def key_of(ledger_key: LedgerKey) -> bytes:
    first, stop = slots(ledger_key.partition)
    return _KEY.pack(ledger_key.topic_id, first, stop - 1)


def read_key(key: bytes) -> LedgerKey:
    if len(key) != _KEY.size:
        raise _malformed("key", f"{len(key)} bytes, not {_KEY.size}")
    topic_id, first, last = _KEY.unpack(key)
    if first % SLOTS or last - first != SLOTS - 1:
        raise _malformed("key", f"slots {first} to {last} do not belong to a partition")
    return LedgerKey(Uuid(topic_id), first // SLOTS)


def message(ledger_key: LedgerKey, part: LedgerPart) -> Message:
    return Message(key_of(ledger_key), _written(part))


def parts(ledger: Ledger, epoch: int, first_row: int) -> Iterator[LedgerPart]:
    """
    Make the parts of a ledger to be published, from a row on, one after the other. The next call begins at the
    `first_unfinished` of the ledger. Without rows there is one part, which only has the start of the log.
    """
    rows, sections = ledger.rows, ledger.sections
    first = max(first_row, rows.first)
    ends = [section.first_row for section in sections[1:]]
    for section, end in zip(sections, [*ends, rows.end], strict=True):
        while first < end or (first == end == rows.end and section == sections[-1]):
            stop = min(end, first + ROWS_MAX)
            columns = rows.take(first, stop)
            yield LedgerPart(ledger.batched, epoch, ledger.start, section.unix_time_ns, section.part, first, columns)
            first = stop
            if first == rows.end:
                return


class Replay:
    def __init__(self) -> None:
        self.found: dict[LedgerKey, ReplayedLedger] = {}
        self.unread: list[str] = []
        self.missed: list[str] = []  # of these, those that no later message has replaced
        self._unread_of: dict[LedgerKey, list[str]] = {}
        self._number = 0

    def add(self, key: bytes, value: bytes) -> None:
        number, self._number = self._number, self._number + 1
        ledger_key: LedgerKey | None = None
        try:
            ledger_key = read_key(key)
            part = read_part(value)
        except Malformed as failure:
            self.leave_out(f"message {number}: {failure}", ledger_key)
            return
        before = self._standing(ledger_key)
        if ledger_key not in self.found:
            self.found[ledger_key] = ReplayedLedger(_empty(part), part.epoch)
        _replay(self.found[ledger_key], part)
        if before < self._standing(ledger_key):  # it continues what is known, or a new leader has read the log
            for reason in self._unread_of.pop(ledger_key, ()):
                self.missed.remove(reason)

    def leave_out(self, reason: str, ledger_key: LedgerKey | None = None) -> None:
        self.unread.append(reason)
        self.missed.append(reason)
        if ledger_key:
            self._unread_of.setdefault(ledger_key, []).append(reason)

    def _standing(self, ledger_key: LedgerKey) -> tuple[int, int]:
        """
        How far a ledger has come: its epoch, and how many rows it has had.
        """
        replayed = self.found.get(ledger_key)
        return (replayed.epoch, replayed.ledger.rows.end) if replayed else _NOWHERE


def _replay(replayed: ReplayedLedger, part: LedgerPart) -> None:
    ledger, named = replayed.ledger, f"rows {part.first_row} to {part.stop - 1}"
    if part.epoch < replayed.epoch:
        replayed.faults.append(f"{named} are of epoch {part.epoch}, after rows of epoch {replayed.epoch}")
        return
    if part.first_row > ledger.rows.end and _begins_with_its_log(part):
        replayed.ledger = ledger = _empty(part)  # the rows between were of records that are deleted
    elif part.first_row > ledger.rows.end:
        lost = f"rows {ledger.rows.end} to {part.first_row - 1} are missing"
        replayed.faults.append(f"{lost}, so {named} are left out")
        return
    if part.epoch > replayed.epoch or not _is_known(ledger, part):
        replayed.ledger = ledger = _taken_over(ledger, part)
    replayed.epoch = part.epoch
    if part.start > ledger.start:
        ledger.drop_before(part.start)


def _begins_with_its_log(part: LedgerPart) -> bool:
    """
    Whether everything before it is deleted.
    """
    offsets = part.columns[0]
    return not offsets or offsets[0] <= part.start


def _is_known(ledger: Ledger, part: LedgerPart) -> bool:
    """
    Whether the ledger has these rows; the last of them may have grown.
    """
    first = max(part.first_row, ledger.rows.first)  # of those before it nothing is known any more, but that they were
    if first >= part.stop:
        return True
    known, told = ledger.rows.take(first, part.stop), tuple(column[first - part.first_row :] for column in part.columns)
    section = ledger.section_of(first)
    return (
        known[:3] == told[:3]
        and [column[:-1] for column in known[3:]] == [column[:-1] for column in told[3:]]
        and known[-1][-1] >= told[-1][-1]
        and (section.unix_time_ns, section.part) == (part.unix_time_ns, part.part)
    )


def _taken_over(ledger: Ledger, part: LedgerPart) -> Ledger:
    if part.first_row < ledger.rows.first:
        ledger = _empty(part)
    ledger.cut(part.first_row)
    ledger.begin(part.unix_time_ns, part.part)
    ledger.rows.extend(part.columns)
    return ledger


def _empty(part: LedgerPart) -> Ledger:
    return Ledger(part.batched, part.unix_time_ns, part.part, part.first_row)


def _written(part: LedgerPart) -> bytes:
    place = part.start, part.unix_time_ns, *part.part, part.first_row, len(part.columns[0])
    head = _HEAD.pack(VERSION, part.batched, part.epoch, *place)
    data = head + b"".join(_turned(column).tobytes() for column in part.columns)
    return data + _CRC.pack(crc32c(data))


def read_part(data: bytes) -> LedgerPart:
    body = data[: -_CRC.size]
    if len(body) < _HEAD.size or _CRC.pack(crc32c(body)) != data[-_CRC.size :]:
        raise _malformed("crc", "the CRC is not that of the bytes")
    version, batched, epoch, start, unix_time_ns, *part, first_row, count = _HEAD.unpack_from(body)
    if version != VERSION:
        raise _malformed("version", f"version {version}, but this gateway reads {VERSION}")
    columns, pos = [], _HEAD.size
    for letter in COLUMN_TYPES:
        column = array(letter)
        end = pos + count * column.itemsize
        column.frombytes(body[pos:end])
        columns.append(_turned(column))
        pos = end
    return LedgerPart(bool(batched), epoch, start, unix_time_ns, RingRange(*part), first_row, tuple(columns))


def _turned(column: "array[int]") -> "array[int]":
    if _SWAPPED:
        column.byteswap()
    return column


def _malformed(field_name: str, reason: str) -> Malformed:
    return Malformed(MessageField(TOPIC, VERSION, field_name), 0, reason)
