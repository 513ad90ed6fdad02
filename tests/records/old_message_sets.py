"""
Message sets: made and read by kafka-python, or handmade where no client would make them.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from kgateway.records.compression import Codec, compress
from kgateway.records.message_set import entry
from kgateway.records.old_lz4 import broken
from kgateway.records.record import Record
from tests.records.values import record_lists

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
# kafka-python needs another library for the broken lz4 of magic 0
FORMS = [(magic, codec) for magic in (0, 1) for codec in OLD_CODECS]
JUDGED_FORMS = [form for form in FORMS if form != (0, Codec.LZ4)]


def bare_lists(min_size: int = 0) -> st.SearchStrategy[list[Record]]:
    """
    Records without headers, at consecutive offsets from 0.
    """
    return record_lists(min_size=min_size).map(lambda rows: [row._replace(headers=()) for row in rows])


def known(rows: Sequence[Record], magic: int) -> list[Record]:
    """
    The parts of records that a message of this magic keeps.
    """
    return [row._replace(headers=(), timestamp=row.timestamp if magic else -1) for row in rows]


def judged_set(rows: Sequence[Record], magic: int, codec: Codec) -> bytes:
    """
    The set that kafka-python's producer makes.
    """
    builder = LegacyRecordBatchBuilder(magic, codec.value, 1 << 30)
    for row in rows:
        builder.append(row.offset, row.timestamp, row.key, row.value)
    return bytes(builder.build())


def handmade_set(
    rows: Sequence[Record], magic: int, codec: Codec, *, offset: int | None = None, attributes: int = 0
) -> bytes:
    """
    A handmade set, which may claim anything.
    """
    inner = b"".join(
        entry(row.offset, magic, row.key, row.value, row.timestamp, attributes if codec is Codec.NONE else 0)
        for row in rows
    )
    return inner if codec is Codec.NONE else wrapped(inner, magic, codec, offset or 0, attributes)


def wrapped(inner: bytes, magic: int, codec: Codec, offset: int = 0, attributes: int = 0) -> bytes:
    """
    A compressed message around a set.
    """
    packed = compress(codec, inner)
    if codec is Codec.LZ4 and magic == 0:
        packed = broken(packed)
    return entry(offset, magic, None, packed, 0, attributes | codec)


def read_by_judge(data: bytes) -> list[Record]:
    """
    The records that kafka-python's consumer reads, with its checks of CRCs.
    """
    found: list[Record] = []
    memory: Any = MemoryRecords(data)
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.validate_crc()
        for record in batch:
            assert record.validate_crc()
            timestamp = -1 if record.timestamp is None else record.timestamp
            found.append(Record(record.offset, timestamp, record.key, record.value))
    return found
