"""
What producers were promised, to be checked after a crash.

Each record names its sender and its sequence number in its partition, and ends with a checksum:

    producer    4    number of the producer
    life        4    number of its client: a producer changes clients now and then
    sequence    4    0, 1, 2, ... of this producer in this partition
    filling          bytes that follow from these numbers
    checksum    4    CRC-32 of topic, partition and all bytes before it
"""

import struct
from collections import defaultdict
from random import Random
from typing import NamedTuple
from zlib import crc32

PartitionName = tuple[str, int]  # topic and index; the clients have a TopicPartition of their own

_head = struct.Struct(">III")
_checksum = struct.Struct(">I")
LEAST_BYTES = _head.size + _checksum.size
_WORDS = Random(1).choices([b"order ", b"payment ", b"\0\0\0\0", bytes(range(16)), b"%d " % (1 << 40)], k=4_000)
_FILLING = b"".join(_WORDS) + Random(2).randbytes(40_000)  # some of it compresses, some does not


class NotSent(Exception):
    """
    These bytes were never sent to this partition.
    """


class Sent(NamedTuple):
    """
    The sender and number of a record.
    """

    producer: int
    life: int
    sequence: int


class Stream(NamedTuple):
    """
    The records of a producer in a partition.
    """

    place: PartitionName
    producer: int


def written(place: PartitionName, sent: Sent, size: int) -> bytes:
    """
    The value of a record.
    """
    start = hash(sent) % len(_FILLING)
    filling = _FILLING[start : start + size - LEAST_BYTES]
    data = _head.pack(*sent) + filling
    return data + _checksum.pack(_sum(place, data))


def read(place: PartitionName, value: bytes) -> Sent:
    """
    The sender of this value; NotSent if it is not as it was sent to this partition.
    """
    data, checksum = value[: -_checksum.size], value[-_checksum.size :]
    if len(value) < LEAST_BYTES or checksum != _checksum.pack(_sum(place, data)):
        raise NotSent(f"{len(value)} bytes whose checksum is not theirs: {value[:40].hex()}")
    return Sent(*_head.unpack_from(data))


def _sum(place: PartitionName, data: bytes) -> int:
    topic, partition = place
    return crc32(data, crc32(b"%s %d" % (topic.encode(), partition)))


class Ledger:
    """
    What was sent and what was acknowledged. Each stream has one producer in one thread.
    """

    def __init__(self) -> None:
        self.sent: defaultdict[Stream, int] = defaultdict(int)  # number of records sent
        self.acknowledged: defaultdict[Stream, dict[int, int | None]] = defaultdict(dict)  # offset by sequence number
        self.repeating: set[int] = set()  # non-idempotent producers, whose retries are appended twice
        self.faults: list[str] = []  # what producers were told wrongly

    def next(self, place: PartitionName, producer: int, life: int) -> Sent:
        """
        The next record of a producer.
        """
        stream = Stream(place, producer)
        sequence = self.sent[stream]
        self.sent[stream] += 1
        return Sent(producer, life, sequence)

    def promise(self, place: PartitionName, sent: Sent, offset: int | None) -> None:
        """
        Note that a record was acknowledged at this offset; `None` if a later record of an idempotent producer was,
        which implies only that this one is stored.
        """
        self.acknowledged[Stream(place, sent.producer)][sent.sequence] = offset

    def refuse(self, place: PartitionName, sent: Sent, reason: object) -> None:
        """
        Note that the server or the client will not write a record.
        """
        self.faults.append(f"{sent} for {place} was refused: {reason}")

    @property
    def promises(self) -> int:
        return sum(map(len, list(self.acknowledged.values())))

    def missing(self) -> list[str]:
        """
        The producers that still wait for a response.
        """
        return [
            f"{stream}: {sent} records were sent, {len(self.acknowledged[stream])} acknowledged"
            for stream, sent in self.sent.items()
            if sent != len(self.acknowledged[stream])
        ]
