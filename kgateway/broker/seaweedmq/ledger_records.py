"""
How ledgers are kept: as messages of the topic `offset-mappings` in the namespace `kafka-system`.

The key says whose ledger it is, by topic id and the 32 slots of the partition in the ledger's own ring:

    byte  size
       0    16  topic id
      16     4  first slot, 32 times the partition's index
      20     4  last slot

The value is a part of it, of one section:

    byte  size
       0     1  version                1
       1     1  whether a message of the topic is a batch
       2     4  epoch of the owner
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
take the place of those that have their numbers, and of all behind them. Rows that do not go on from those before are
left out, for what is between was lost, and so are those of an owner whose epoch was over; the log tells the rest.
"""

import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from kgateway.broker.seaweedmq.forms.form import Message
from kgateway.broker.seaweedmq.layout import SLOTS, Range, slots
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_rows import COLUMN_TYPES, Columns
from kgateway.wire.malformed import Malformed, Place
from kgateway.wire.uuids import SIZE, Uuid

NAMESPACE, TOPIC = "kafka-system", "offset-mappings"
VERSION = 1
ROWS_MAX = 4096  # in a message

_KEY = Struct(f">{SIZE}sii")
_HEAD = Struct(">BBiqqiiqi")
_CRC = Struct(">I")
_NOWHERE = -1, -1
_SWAPPED = sys.byteorder == "little"


class Owner(NamedTuple):
    """
    Whose ledger it is.
    """

    topic_id: Uuid
    partition: int


class Part(NamedTuple):
    """
    What a message says.
    """

    batched: bool
    epoch: int
    start: int
    unix_time_ns: int
    part: Range
    first_row: int
    columns: Columns

    @property
    def stop(self) -> int:
        """
        The number of the row that comes next.
        """
        return self.first_row + len(self.columns[0])


@dataclass(slots=True)
class Replayed:
    """
    A ledger, as far as its messages tell, and what they do not.
    """

    ledger: Ledger
    epoch: int
    faults: list[str] = field(default_factory=list)


def key_of(owner: Owner) -> bytes:
    """
    The key of the messages of a ledger.
    """
    first, stop = slots(owner.partition)
    return _KEY.pack(owner.topic_id, first, stop - 1)


def read_key(key: bytes) -> Owner:
    """
    Whose ledger a message with this key is of.
    """
    if len(key) != _KEY.size:
        raise _malformed("key", f"{len(key)} bytes, not {_KEY.size}")
    topic_id, first, last = _KEY.unpack(key)
    if first % SLOTS or last - first != SLOTS - 1:
        raise _malformed("key", f"slots {first} to {last} are of no partition")
    return Owner(Uuid(topic_id), first // SLOTS)


def messages(ledger: Ledger, owner: Owner, epoch: int, first_row: int) -> list[Message]:
    """
    What is to be published of a ledger, from a row on; the next time that is `ledger.settled`. Where there are no rows,
    it tells of the start only.
    """
    return [message(owner, part) for part in parts(ledger, epoch, first_row)]


def message(owner: Owner, part: Part) -> Message:
    """
    What is published of a part.
    """
    return Message(key_of(owner), _written(part))


def parts(ledger: Ledger, epoch: int, first_row: int) -> Iterator[Part]:
    """
    The same in parts, made one after the other.
    """
    rows, sections = ledger.rows, ledger.sections
    first = max(first_row, rows.first)
    ends = [section.first_row for section in sections[1:]]
    for section, end in zip(sections, [*ends, rows.end], strict=True):
        while first < end or (first == end == rows.end and section == sections[-1]):
            stop = min(end, first + ROWS_MAX)
            columns = rows.take(first, stop)
            yield Part(ledger.batched, epoch, ledger.start, section.unix_time_ns, section.part, first, columns)
            first = stop
            if first == rows.end:
                return


def replay(kept: Iterable[tuple[bytes, bytes]]) -> tuple[dict[Owner, Replayed], list[str]]:
    """
    The ledgers that messages tell of, by their keys and values; and which of the messages cannot be read.
    """
    replaying = Replay()
    for key, value in kept:
        replaying.add(key, value)
    return replaying.found, replaying.unread


class Replay:
    """
    The same for messages that come one by one.
    """

    def __init__(self) -> None:
        self.found: dict[Owner, Replayed] = {}
        self.unread: list[str] = []
        self.missed: list[str] = []  # of these, those whose place no later message has taken
        self._unread_of: dict[Owner, list[str]] = {}
        self._number = 0

    def add(self, key: bytes, value: bytes) -> None:
        """
        One more.
        """
        number, self._number = self._number, self._number + 1
        owner: Owner | None = None
        try:
            owner = read_key(key)
            part = read_part(value)
        except Malformed as failure:
            self._leave_out(owner, f"message {number}: {failure}")
            return
        before = self._standing(owner)
        if owner not in self.found:
            self.found[owner] = Replayed(_empty(part), part.epoch)
        _replay(self.found[owner], part)
        if before < self._standing(owner):  # it has gone on from what is known, or an owner has begun who has looked
            for reason in self._unread_of.pop(owner, ()):
                self.missed.remove(reason)

    def _leave_out(self, owner: Owner | None, reason: str) -> None:
        self.unread.append(reason)
        self.missed.append(reason)
        if owner:
            self._unread_of.setdefault(owner, []).append(reason)

    def _standing(self, owner: Owner) -> tuple[int, int]:
        """
        How far a ledger has come: its epoch, and how many rows it has had.
        """
        replayed = self.found.get(owner)
        return (replayed.epoch, replayed.ledger.rows.end) if replayed else _NOWHERE


def _replay(replayed: Replayed, part: Part) -> None:
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


def _begins_with_its_log(part: Part) -> bool:
    """
    Whether nothing can have been before it but what is deleted.
    """
    offsets = part.columns[0]
    return not offsets or offsets[0] <= part.start


def _is_known(ledger: Ledger, part: Part) -> bool:
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


def _taken_over(ledger: Ledger, part: Part) -> Ledger:
    if part.first_row < ledger.rows.first:
        ledger = _empty(part)
    ledger.cut(part.first_row)
    ledger.begin(part.unix_time_ns, part.part)
    ledger.rows.extend(part.columns)
    return ledger


def _empty(part: Part) -> Ledger:
    return Ledger(part.batched, part.unix_time_ns, part.part, part.first_row)


def _written(part: Part) -> bytes:
    place = part.start, part.unix_time_ns, *part.part, part.first_row, len(part.columns[0])
    head = _HEAD.pack(VERSION, part.batched, part.epoch, *place)
    data = head + b"".join(_turned(column).tobytes() for column in part.columns)
    return data + _CRC.pack(crc32c(data))


def read_part(data: bytes) -> Part:
    """
    What a message says.
    """
    body = data[: -_CRC.size]
    if len(body) < _HEAD.size or _CRC.pack(crc32c(body)) != data[-_CRC.size :]:
        raise _malformed("crc", "the CRC is not that of the bytes")
    version, batched, epoch, start, unix_time_ns, *part, first_row, count = _HEAD.unpack_from(body)
    if version != VERSION:
        raise _malformed("version", f"version {version}, and this gateway reads {VERSION}")
    columns, pos = [], _HEAD.size
    for letter in COLUMN_TYPES:
        column = array(letter)
        end = pos + count * column.itemsize
        column.frombytes(body[pos:end])
        columns.append(_turned(column))
        pos = end
    return Part(bool(batched), epoch, start, unix_time_ns, Range(*part), first_row, tuple(columns))


def _turned(column: "array[int]") -> "array[int]":
    if _SWAPPED:
        column.byteswap()
    return column


def _malformed(field_name: str, reason: str) -> Malformed:
    return Malformed(Place(TOPIC, VERSION, field_name), 0, reason)
