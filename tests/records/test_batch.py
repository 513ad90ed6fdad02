"""
Unopened batches: headers, boundaries, checksums, and the move to another offset.
"""

import tracemalloc

import pytest
from kafka.record.default_records import DefaultRecordBatch

from kgateway.records.batch import (
    HEAD_SIZE,
    HEADER_SIZE,
    BatchHeader,
    Incomplete,
    TimestampType,
    batches,
    crc_holds,
    placed,
    read_batch,
    read_header,
    stamped,
)
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.types import Buffer
from tests.records.crc_batches import sealed, three
from tests.records.values import JAVA_BATCHES, SAMPLE, batch_of, built

PLAIN = built(SAMPLE)


def test_header_fields_are_read_from_their_places() -> None:
    data = bytes.fromhex(
        "0102030405060708 00000031 0a0b0c0d 02 f1f2f3f4 0013 00000005 1112131415161718 2122232425262728"
        "3132333435363738 4142 51525354 00000006"
    )
    assert read_header(b"__" + data, 2) == BatchHeader(
        base_offset=0x0102030405060708,
        batch_length=49,
        partition_leader_epoch=0x0A0B0C0D,
        magic=2,
        crc=0xF1F2F3F4,
        attributes=0x13,
        last_offset_delta=5,
        base_timestamp=0x1112131415161718,
        max_timestamp=0x2122232425262728,
        producer_id=0x3132333435363738,
        producer_epoch=0x4142,
        base_sequence=0x51525354,
        records_count=6,
    )


@pytest.mark.parametrize("codec", Codec)
def test_java_header_is_read_as_kafka_python_reads_it(codec: Codec) -> None:
    """
    The header of a Java producer's batch has the values that kafka-python reads.
    """
    header, theirs = read_header(JAVA_BATCHES[codec]), DefaultRecordBatch(JAVA_BATCHES[codec])
    assert header.codec == codec == theirs.compression_type
    assert header.size == len(JAVA_BATCHES[codec]) == theirs.size_in_bytes
    assert header.last_offset == 2 == theirs.last_offset
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1000)
    assert header.partition_leader_epoch == 5 == theirs.leader_epoch
    assert header.crc == theirs.crc


@pytest.mark.parametrize(
    ("attributes", "true"),
    [(0x08, "appended"), (0x10, "is_transactional"), (0x20, "is_control"), (0x40, "has_delete_horizon"), (0x80, "")],
)
def test_attribute_bits_are_independent(attributes: int, true: str) -> None:
    """
    Each has its property, beside any codec, and unknown bits have none.
    """
    for codec in Codec:
        header = sealed(three(), attributes=attributes | codec).header
        assert header.codec is codec
        assert header.is_transactional is (true == "is_transactional")
        assert header.is_control is (true == "is_control")
        assert header.has_delete_horizon is (true == "has_delete_horizon")
        expected = TimestampType.LOG_APPEND_TIME if true == "appended" else TimestampType.CREATE_TIME
        assert header.timestamp_type is expected


def test_last_offset_is_that_of_the_header() -> None:
    """
    The number of remaining records does not matter.
    """
    assert sealed(three(), base_offset=1 << 40, last_offset_delta=9).header.last_offset == (1 << 40) + 9


@pytest.mark.parametrize("left", range(HEADER_SIZE))
def test_a_truncated_header_is_incomplete(left: int) -> None:
    """
    Fewer than 61 bytes are not read, wherever they start.
    """
    with pytest.raises(Incomplete) as e:
        read_header(memoryview(b"___" + PLAIN[:left]), 3)
    assert (e.value.field, e.value.position) == (MessageField("RecordBatch", 2, "header"), 3)
    assert e.value.reason == f"{left} bytes are left, but a header has 61"


@pytest.mark.parametrize("magic", [0, 1, 3, 0xFF])
def test_other_magic_is_malformed(magic: int) -> None:
    """
    Only magic 2 is a record batch; another one is wrong bytes, not missing ones.
    """
    with pytest.raises(Malformed, match=r"RecordBatch v2: magic at byte 20: magic -?\d, not 2") as e:
        read_header(b"____" + PLAIN[:16] + bytes([magic]) + PLAIN[17:], 4)
    assert not isinstance(e.value, Incomplete)


@pytest.mark.parametrize("length", [48, 0, -1, -(1 << 31)])
def test_batch_shorter_than_its_header_is_malformed(length: int) -> None:
    """
    A shorter length would lead nowhere, or backwards.
    """
    data = PLAIN[:8] + length.to_bytes(4, "big", signed=True) + PLAIN[12:]
    with pytest.raises(Malformed, match=r"RecordBatch v2: batch_length at byte 8: .* shorter than its header"):
        list(batches(data, cut_tail=True))


@pytest.mark.parametrize("wrap", [bytes, memoryview, bytearray])
def test_batches_of_a_buffer_are_found_in_order(wrap: type[Buffer]) -> None:
    """
    They are views of the buffer, from any position on.
    """
    parts = [PLAIN, JAVA_BATCHES[Codec.LZ4], PLAIN]
    buffer = wrap(b"_" + b"".join(parts))
    assert [bytes(batch.data) for batch in batches(buffer, 1)] == parts
    assert [bytes(batch.data) for batch in batches(buffer, 1 + len(PLAIN))] == parts[1:]
    assert list(batches(b"")) == []
    assert all(batch.data.obj is memoryview(buffer).obj for batch in batches(buffer, 1))


def test_batches_are_found_lazily() -> None:
    """
    Those before damage are returned before the error.
    """
    found = batches(PLAIN + PLAIN[:16] + b"\x09" + PLAIN[17:])
    assert next(found).data == PLAIN
    with pytest.raises(Malformed):
        next(found)


def test_a_truncated_tail_is_skipped_or_refused() -> None:
    """
    All whole batches of a buffer are found; a truncated one is an error only where truncation is not allowed.
    """
    whole = PLAIN + JAVA_BATCHES[Codec.ZSTD]
    for end in range(len(whole) + 1):
        expected = (end >= len(PLAIN)) + (end == len(whole))
        assert len(list(batches(whole[:end], cut_tail=True))) == expected, end
        if end in (0, len(PLAIN), len(whole)):
            assert len(list(batches(whole[:end]))) == expected
        else:
            with pytest.raises(Incomplete):
                list(batches(whole[:end]))


def test_wrong_magic_is_no_truncated_tail() -> None:
    """
    A tail may be short, but its bytes must be right.
    """
    with pytest.raises(Malformed):
        list(batches(PLAIN[:16] + b"\1" + PLAIN[17:], cut_tail=True))


@pytest.mark.parametrize("codec", Codec)
def test_crcs_of_java_batches_are_valid(codec: Codec) -> None:
    """
    The CRC is the same for bytes and for a view into a larger buffer.
    """
    data = JAVA_BATCHES[codec]
    assert crc_holds(read_batch(data))
    assert crc_holds(read_batch(b"___" + data + b"___", 3))


def test_the_crc_covers_everything_behind_it() -> None:
    """
    Any changed bit behind the CRC is noticed, and none before it.
    """
    for position in range(len(PLAIN)):
        if 8 <= position < 12 or position == 16:
            continue  # the batch would end elsewhere, or be none
        for bit in range(8):
            damaged = bytearray(PLAIN)
            damaged[position] ^= 1 << bit
            assert crc_holds(read_batch(damaged)) is (position < 16), (position, bit)


def test_checking_a_crc_copies_nothing() -> None:
    """
    The CRC of a large batch is computed in place.
    """
    batch = batch_of([Record(0, 0, None, bytes(8 << 20))])
    tracemalloc.start()
    try:
        assert crc_holds(batch)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000


def test_a_batch_gets_its_offset_without_a_copy() -> None:
    """
    A head of 16 bytes in front of a view of the original bytes places it, and its CRC stays valid.
    """
    frame = b"___" + PLAIN + b"___"
    head, rest = placed(read_batch(frame, 3), (1 << 40) + 7, 12)
    assert len(head) == HEAD_SIZE
    assert isinstance(rest, memoryview)
    assert rest.obj is frame
    assert rest == PLAIN[HEAD_SIZE:]
    moved = read_batch(b"".join([head, rest]))
    assert (moved.header.base_offset, moved.header.partition_leader_epoch) == ((1 << 40) + 7, 12)
    assert moved.header.size == len(PLAIN)
    assert crc_holds(moved)


# UnifiedLog of Kafka 4.3.1, with LogAppendTime: when it stamped the Java producer's batch, and the resulting CRC.
STAMPED = {
    Codec.NONE: (1_795_270_926_238, 0x0DA05016),
    Codec.GZIP: (1_795_270_926_285, 0x136133B9),
    Codec.SNAPPY: (1_795_270_926_293, 0x79251765),
    Codec.LZ4: (1_795_270_926_312, 0xBB2BA2B6),
    Codec.ZSTD: (1_795_270_926_326, 0x158AC5DE),
}


@pytest.mark.parametrize("codec", Codec)
def test_batch_is_stamped_as_kafkas_log_does(codec: Codec) -> None:
    """
    LogAppendTime is set in the header, with a new CRC; the records, compressed or not, are unchanged.
    """
    timestamp, crc = STAMPED[codec]
    batch = read_batch(JAVA_BATCHES[codec])
    found = stamped(batch, timestamp)
    assert (found.header.timestamp_type, found.header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, timestamp)
    assert (found.header.crc, found.header.codec) == (crc, codec)
    assert found == read_batch(found.data)
    assert found.data[HEADER_SIZE:] == batch.data[HEADER_SIZE:]
    assert batch == read_batch(JAVA_BATCHES[codec])
