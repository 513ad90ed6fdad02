"""
Our message sets against Kafka's builder and reader, and against its log, which converts sets of old producers to
batches.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.records.batch import LOG_APPEND_TIME_BIT, TimestampType, batches, placed
from kgateway.records.compression import Codec
from kgateway.records.from_message_set import BatchTarget, upgraded
from kgateway.records.message_set import entry
from kgateway.records.record import Record, records
from kgateway.records.slices import at_once
from kgateway.records.to_message_set import downgraded
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.kafka.batches import MAX_I32, Kafka
from tests.records.old_message_sets import FORMS, bare_lists, handmade_set, known, wrapped
from tests.records.values import built, record_lists

pytestmark = pytest.mark.kafka

PLENTY = 1 << 20
BY_FORM = pytest.mark.parametrize(("magic", "codec"), FORMS)
ROWS = [Record(n, 1_000 - n, b"key %d" % n, b"value") for n in range(3)]
LEADER: dict[str, Any] = {"base_offset": 7, "leader_epoch": 5, "timestamp_type": "CreateTime"}


def answered(data: bytes) -> ErrorCode:
    """
    Our answer to the producer of this set.
    """
    try:
        at_once(upgraded(data, BatchTarget(PLENTY)))
    except KafkaError as refusal:
        return refusal.code
    return ErrorCode.NONE


@BY_FORM
def test_log_converts_as_we_do(magic: int, codec: Codec, kafka: Kafka) -> None:
    """
    Kafka's log and we convert a set of Kafka's producer to the same batch: the same bytes without compression, else
    the same header and records.
    """

    @given(rows=bare_lists(min_size=1))
    def check(rows: list[Record]) -> None:
        sent = kafka.build(rows, magic=magic, codec=codec)
        code, stored = kafka.append_bytes(sent, **LEADER)
        assert code == ErrorCode.NONE
        batch = at_once(upgraded(sent, BatchTarget(PLENTY)))
        assert batch
        ours = b"".join(placed(batch, 7, 5))
        if codec is Codec.NONE:
            assert ours == stored
        [mine], [theirs] = batches(ours), batches(stored)
        assert list(records(mine)) == list(records(theirs))
        for name in ("attributes", "last_offset_delta", "base_timestamp", "max_timestamp", "records_count"):
            assert getattr(mine.header, name) == getattr(theirs.header, name), name

    check()


def odd_sets(magic: int) -> dict[str, bytes]:
    """
    Sets that a producer should not send.
    """
    bare, packed = (handmade_set(ROWS, magic, codec) for codec in (Codec.NONE, Codec.GZIP))
    other = handmade_set(ROWS, 1 - magic, Codec.NONE)
    return {
        "damaged": bare[:-1] + b"x",
        "damaged outside": packed[:-1] + b"x",
        "damaged inside": wrapped(bare[:-1] + b"x", magic, Codec.GZIP),
        "other magic behind": bare + other,
        "other magic inside": wrapped(other, magic, Codec.GZIP),
        "batch behind": bare + built(ROWS),
        "two compressed": packed + packed,
        "compressed behind": bare + packed,
        "compressed before": packed + bare,
        "compressed twice": wrapped(packed, magic, Codec.LZ4),
        "empty inside": wrapped(b"", magic, Codec.GZIP),
        "no value": entry(0, magic, None, None, 0, Codec.GZIP),
        "zstd": wrapped(bare, magic, Codec.ZSTD),
        "offset too low": wrapped(bare, magic, Codec.GZIP, 1),
        "offset of the last": wrapped(bare, magic, Codec.GZIP, 2),
        "too short": bare[:8] + b"\0\0\0\x0d" + bare[12:],
        "cut off": bare[:-1],
        "cut off inside": wrapped(bare[:-1], magic, Codec.GZIP),
        "marked": handmade_set(ROWS, magic, Codec.NONE, attributes=LOG_APPEND_TIME_BIT),
        "marked outside": handmade_set(ROWS, magic, Codec.GZIP, attributes=LOG_APPEND_TIME_BIT),
        "marked inside": wrapped(
            handmade_set(ROWS, magic, Codec.NONE, attributes=LOG_APPEND_TIME_BIT), magic, Codec.GZIP
        ),
        "nothing": b"",
    }


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("magic", [0, 1])
def test_odd_sets_are_answered_alike(magic: int, timestamp_type: str, kafka: Kafka) -> None:
    """
    They are answered with Kafka's code, except for deliberate differences.
    """
    meant = {}
    if timestamp_type == "CreateTime":
        # As in batches, Kafka accepts the mark where it does not matter, and removes it.
        meant = {("marked", 1): ErrorCode.INVALID_TIMESTAMP, ("marked outside", 1): ErrorCode.INVALID_TIMESTAMP}
    # Kafka's code depends on what it meets first.
    meant |= {("too short", magic): ErrorCode.INVALID_RECORD}
    told = {}
    for name, data in odd_sets(magic).items():
        code, _ = kafka.append_bytes(data, **{**LEADER, "timestamp_type": timestamp_type})
        told[name] = meant.get((name, magic), code)
    assert {name: answered(data) for name, data in odd_sets(magic).items()} == told


@pytest.mark.parametrize("log_append_time_ms", [None, 77])
@BY_FORM
def test_kafka_reads_our_sets(magic: int, codec: Codec, log_append_time_ms: int | None, kafka: Kafka) -> None:
    """
    Kafka's reader finds all records in sets that we convert from batches; without compression they are the bytes of
    its own builder.
    """

    @given(rows=record_lists(min_size=1), base=st.integers(0, MAX_I32))
    def check(rows: list[Record], base: int) -> None:
        options: dict[str, Any] = {"base_offset": base, "log_append_time_ms": log_append_time_ms}
        made = at_once(downgraded([built(rows, codec=codec, **options)], magic, base, PLENTY))
        data = b"".join(made.parts)
        times = rows if log_append_time_ms is None else [row._replace(timestamp=log_append_time_ms) for row in rows]
        expected = known([row._replace(offset=base + row.offset) for row in times], magic)
        read = kafka.read_set(data)
        assert [record for _, found in read for record in found] == expected
        stamps = -1 if magic == 0 else TimestampType(log_append_time_ms is not None)
        assert {(outside[0], outside[1], outside[2]) for outside, _ in read} == {(magic, codec, stamps)}
        assert read[-1][0][3] == expected[-1].offset
        if codec is Codec.NONE:
            bare = [row._replace(headers=()) for row in rows]
            assert data == kafka.build(bare, magic=magic, codec=codec, **options)

    check()
