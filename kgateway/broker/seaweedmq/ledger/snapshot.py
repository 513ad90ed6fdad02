"""
A saved ledger: one file beside the log of its partition, written as a whole.

    byte  size
       0     1  version                1
       1     1  whether a message of the topic is a batch
       2    16  topic id
      18     4  partition
      22     4  epoch of the leader
      26     8  Kafka's offset before which nothing counts any more
      34     4  how many sections there are
      38     8  how many rows there are
      46        sections:
                     8  place of the first row
                     8  nanoseconds of the generation
                     4  start of the range that the cluster gave the partition
                     4  stop of the range
                Kafka's offsets of all rows, 8 bytes each; then SeaweedMQ's; then times; then largest timestamps
                spans, 4 bytes each
             4  CRC-32C of all before

Numbers are little-endian. A file that differs in any bit is not used: the log files have everything that it says.
"""

import sys
from array import array
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import COLUMN_TYPES, Ledger, Section
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid

VERSION = 1
_HEAD = Struct("<B?16siiqiq")
_SECTION = Struct("<qqii")
_CRC = Struct("<I")
_ROW_BYTES = sum(array(letter).itemsize for letter in COLUMN_TYPES)
_IS_SWAPPED = sys.byteorder == "big"


class UnusableLedger(Exception):
    """
    A saved ledger is damaged, or not that of the log.
    """


class Snapshot(NamedTuple):
    ledger: Ledger
    epoch: int  # of the leader that has saved it


def encode(snapshot: Snapshot, owner: PartitionId) -> bytes:
    ledger, epoch = snapshot
    rows, sections = ledger.rows, ledger.sections
    head = VERSION, ledger.batched, *owner, epoch, ledger.start, len(sections), len(rows)
    parts = [_HEAD.pack(*head), *(_SECTION.pack(first, ns, *part) for first, ns, part in sections)]
    data = b"".join([*parts, *(_little_endian(column).tobytes() for column in rows.columns)])
    return data + _CRC.pack(crc32c(data))


def decode(data: bytes, owner: PartitionId) -> Snapshot:
    if not data:
        raise UnusableLedger("its file is empty")
    if data[0] != VERSION:
        raise UnusableLedger(f"its file has the version {data[0]}, but this gateway reads {VERSION}")
    body = data[: -_CRC.size]
    if len(body) < _HEAD.size or _CRC.pack(crc32c(body)) != data[-_CRC.size :]:
        raise UnusableLedger(f"its file is truncated or damaged: the CRC is not that of its {len(data)} bytes")
    _, batched, topic_id, partition, epoch, start, section_count, row_count = _HEAD.unpack_from(body)
    if (topic_id, partition) != owner:
        raise UnusableLedger(f"its file is that of partition {partition} of the topic with the id {Uuid(topic_id)}")
    pos = _HEAD.size + section_count * _SECTION.size
    sections = [
        Section(first, ns, RingRange(*part)) for first, ns, *part in _SECTION.iter_unpack(body[_HEAD.size : pos])
    ]
    columns = []
    for letter in COLUMN_TYPES:
        column = array(letter)
        end = pos + row_count * column.itemsize
        column.frombytes(body[pos:end])
        columns.append(_little_endian(column))
        pos = end
    ledger = Ledger(batched, *sections[0][1:])
    ledger.start, ledger.sections = start, sections
    ledger.rows.extend(tuple(columns))
    return Snapshot(ledger, epoch)


def saved_bytes(ledger: Ledger) -> int:
    """
    About how large the file of a ledger is.
    """
    return len(ledger.rows) * _ROW_BYTES


def _little_endian(column: "array[int]") -> "array[int]":
    if _IS_SWAPPED:
        column = column[:]
        column.byteswap()
    return column
