"""
What producers were promised, so that it can be asked for after a crash.

Each record tells who sent it and as which number in its partition, and ends with a checksum of that, of its place and
of all its bytes:

    producer    4    who
    life        4    which of its clients: a producer goes on with a new one now and then
    sequence    4    0, 1, 2, ... of this producer in this partition
    filling          some bytes that follow from the numbers
    checksum    4    CRC-32 of topic, partition and what is before it
"""

import struct
from collections import defaultdict
from random import Random
from typing import NamedTuple
from zlib import crc32

Place = tuple[str, int]  # topic, partition

_head = struct.Struct(">III")
_checksum = struct.Struct(">I")
LEAST_BYTES = _head.size + _checksum.size
_WORDS = Random(1).choices([b"order ", b"payment ", b"\0\0\0\0", bytes(range(16)), b"%d " % (1 << 40)], k=4_000)
_FILLING = b"".join(_WORDS) + Random(2).randbytes(40_000)  # some of it can be compressed, some cannot


class NotSent(Exception):
    """
    Nobody sent these bytes to this partition.
    """


class Sent(NamedTuple):
    """
    Whose record, and its number.
    """

    producer: int
    life: int
    sequence: int


class Stream(NamedTuple):
    """
    The records of a producer in a partition.
    """

    place: Place
    producer: int


def written(place: Place, sent: Sent, size: int) -> bytes:
    """
    The value of a record.
    """
    start = hash(sent) % len(_FILLING)
    filling = _FILLING[start : start + size - LEAST_BYTES]
    data = _head.pack(*sent) + filling
    return data + _checksum.pack(_sum(place, data))


def read(place: Place, value: bytes) -> Sent:
    """
    Who sent this value; NotSent where it is not as it was sent to this partition.
    """
    data, checksum = value[: -_checksum.size], value[-_checksum.size :]
    if len(value) < LEAST_BYTES or checksum != _checksum.pack(_sum(place, data)):
        raise NotSent(f"{len(value)} bytes whose checksum is not theirs: {value[:40].hex()}")
    return Sent(*_head.unpack_from(data))


def _sum(place: Place, data: bytes) -> int:
    topic, partition = place
    return crc32(data, crc32(b"%s %d" % (topic.encode(), partition)))


class Ledger:
    """
    What was sent and what was acknowledged. Each stream has one producer, in one thread.
    """

    def __init__(self) -> None:
        self.sent: defaultdict[Stream, int] = defaultdict(int)  # how many
        self.acknowledged: defaultdict[Stream, dict[int, int | None]] = defaultdict(dict)  # offset by sequence number
        self.repeating: set[int] = set()  # producers without idempotence, whose retries are written again
        self.faults: list[str] = []  # what producers were told and should not have been

    def next(self, place: Place, producer: int, life: int) -> Sent:
        """
        The next record of a producer.
        """
        stream = Stream(place, producer)
        sequence = self.sent[stream]
        self.sent[stream] += 1
        return Sent(producer, life, sequence)

    def promise(self, place: Place, sent: Sent, offset: int | None) -> None:
        """
        The server has acknowledged a record, at this offset; `None` where it has acknowledged a later one of an
        idempotent producer, which then is told nothing but that the record is there.
        """
        self.acknowledged[Stream(place, sent.producer)][sent.sequence] = offset

    def refuse(self, place: Place, sent: Sent, reason: object) -> None:
        """
        The server, or the client, will not write a record.
        """
        self.faults.append(f"{sent} for {place} was refused: {reason}")

    @property
    def promises(self) -> int:
        """
        How many there are.
        """
        return sum(map(len, list(self.acknowledged.values())))

    def missing(self) -> list[str]:
        """
        Which producers still wait for an answer.
        """
        return [
            f"{stream}: {sent} records were sent, {len(self.acknowledged[stream])} acknowledged"
            for stream, sent in self.sent.items()
            if sent != len(self.acknowledged[stream])
        ]
