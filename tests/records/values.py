"""
Hypothesis values of records, batches of them, and batches of Kafka's Java producer.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from kgateway.records.batch import Batch, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record

_BLOB = st.none() | st.binary(max_size=12) | st.sampled_from([b"x" * 63, b"x" * 64, b"y" * 9000])
_KEY = st.text(max_size=6) | st.just("é" * 40)
_TIMESTAMP = st.integers(0, 1 << 42)


def record_lists(max_size: int = 8, min_size: int = 0) -> st.SearchStrategy[list[Record]]:
    """
    Records at consecutive offsets from 0.
    """
    fields = st.tuples(_TIMESTAMP, _BLOB, _BLOB, st.lists(st.builds(Header, _KEY, _BLOB), max_size=3).map(tuple))
    return st.lists(fields, min_size=min_size, max_size=max_size).map(
        lambda rows: [Record(offset, *row) for offset, row in enumerate(rows)]
    )


def filled(builder: BatchBuilder, records: Sequence[Record]) -> BatchBuilder:
    """
    The builder with these records added.
    """
    for record in records:
        builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
    return builder


def built(records: Sequence[Record], **options: Any) -> bytes:
    return filled(BatchBuilder(**options), records).build()


def batch_of(records: Sequence[Record], **options: Any) -> Batch:
    return read_batch(built(records, **options))


def with_header(batch: Batch, **changes: Any) -> Batch:
    """
    The batch with another header over the same bytes.
    """
    header = type(batch.header)(**{f.name: getattr(batch.header, f.name) for f in batch.header.__fields__} | changes)
    return replace(batch, header=header)


SAMPLE = [
    Record(0, 1_000, b"key", b"value"),
    Record(1, 990, None, b"a timestamp before the base", (Header("h", b"1"), Header("h", None), Header("", b""))),
    Record(2, 5_000, b"", None),
    Record(3, 2_000, b"k" * 70, b"long " * 100),
]

# Made by MemoryRecordsBuilder of kafka-clients 4.3.1: producer 7, epoch 3, sequence 11, leader epoch 5.
JAVA_RECORDS = [
    Record(0, 1_000, None, None, (Header("hé", None),)),
    Record(1, 997, b"key1", b"value 1 " + b"a" * 36, (Header("hé", b"\1\2"),)),
    Record(2, 994, b"key2", b"value 2 " + b"a" * 36, (Header("hé", None),)),
]
JAVA_BATCHES = {
    Codec.NONE: bytes.fromhex(
        "0000000000000000000000b70000000502ebe09b2b00000000000200000000000003e800000000000003e8000000000000000700"
        "030000000b00000003160000000101020668c3a9017a000502086b6579315876616c756520312061616161616161616161616161"
        "6161616161616161616161616161616161616161616161020668c3a904010276000b04086b6579325876616c7565203220616161"
        "616161616161616161616161616161616161616161616161616161616161616161020668c3a901"
    ),
    Codec.GZIP: bytes.fromhex(
        "0000000000000000000000780000000502e34a390800010000000200000000000003e800000000000003e8000000000000000700"
        "030000000b000000031f8b08000000000000ff1363606060646462cb38bc92b18a819589233bb5d230a22c31a73455c150219108"
        "00d6cbc2c854c6c0cd02d26d04d56d44bc6e460039bc698886000000"
    ),
    Codec.SNAPPY: bytes.fromhex(
        "0000000000000000000000810000000502901884b700020000000200000000000003e800000000000003e8000000000000000700"
        "030000000b0000000382534e415050590000000001000000010000003c860178160000000101020668c3a9017a000502086b6579"
        "315876616c7565203120618a0100053c1804010276000b04013e00320d3e0032a63e000001"
    ),
    Codec.LZ4: bytes.fromhex(
        "00000000000000000000008000000005026581b3be00030000000200000000000003e800000000000003e8000000000000000700"
        "030000000b0000000304224d1860408240000000ff10160000000101020668c3a9017a000502086b6579315876616c7565203120"
        "61010010013c007004010276000b043e0013323e001f323e0013500668c3a90100000000"
    ),
    Codec.ZSTD: bytes.fromhex(
        "00000000000000000000007800000005023bc079ae00040000000200000000000003e800000000000003e8000000000000000700"
        "030000000b0000000328b52ffd0058dc0100d402160000000101020668c3a9017a000502086b6579315876616c75652031206104"
        "010276000b04086b65793232010400018a20647ed58291c009010000"
    ),
}
