"""
Conversion of produced message sets, compared with kafka-python's builder.
"""

import zlib
from functools import partial

import pytest
from hypothesis import given

from kgateway.records.batch import LOG_APPEND_TIME_BIT, Batch, check_produced
from kgateway.records.compression import Codec
from kgateway.records.from_message_set import BatchTarget, upgraded
from kgateway.records.message_set import ENTRY_SIZE, entry
from kgateway.records.record import Record, records
from kgateway.records.slices import at_once
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.records.old_message_sets import FORMS, JUDGED_FORMS, bare_lists, handmade_set, judged_set, known, wrapped
from tests.records.values import built

PLENTY = 1 << 20
ANY = BatchTarget(PLENTY)
ROWS = [Record(n, 1_000 - n, b"key %d" % n, b"value") for n in range(3)]
BY_FORM = pytest.mark.parametrize(("magic", "codec"), FORMS)
BY_MAGIC = pytest.mark.parametrize("magic", [0, 1])


def made(data: bytes, target: BatchTarget = ANY) -> Batch:
    batch = at_once(upgraded(data, target))
    assert batch
    check_produced(batch)
    return batch


def refused(data: bytes, bytes_max: int = PLENTY, codec: Codec | None = None) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        at_once(upgraded(memoryview(data), BatchTarget(bytes_max, codec)))
    return caught.value.code


def recrc(data: bytes) -> bytes:
    """
    The message with a valid CRC.
    """
    return data[:12] + zlib.crc32(data[16:]).to_bytes(4, "big") + data[16:]


@pytest.mark.hypothesis
@pytest.mark.parametrize(("magic", "codec"), JUDGED_FORMS)
def test_sets_of_kafka_python_are_converted(magic: int, codec: Codec) -> None:
    """
    The batch has all records in order, in the set's codec.
    """

    @given(bare_lists(min_size=1))
    def check(rows: list[Record]) -> None:
        batch = made(judged_set(rows, magic, codec))
        assert list(records(batch)) == known(rows, magic)
        assert batch.header.codec is codec

    check()


@BY_FORM
def test_offsets_of_producers_are_ignored(magic: int, codec: Codec) -> None:
    rows = [row._replace(offset=offset) for row, offset in zip(ROWS, (7, 7, 5), strict=True)]
    assert list(records(made(handmade_set(rows, magic, codec)))) == known(ROWS, magic)


@BY_FORM
def test_the_topic_chooses_codec_and_level(magic: int, codec: Codec) -> None:
    data = handmade_set(ROWS * 2_000, magic, codec)
    for wanted in Codec:
        assert made(data, BatchTarget(PLENTY, wanted)).header.codec is wanted
    weak, strong = (len(made(data, BatchTarget(PLENTY, Codec.GZIP, level)).data) for level in (1, 9))
    assert strong < weak


def test_nothing_becomes_nothing() -> None:
    """
    An empty set or a truncated message gives no batch; a truncated message behind others is skipped.
    """
    data = handmade_set(ROWS, 1, Codec.NONE)
    size = len(data) // 3
    for end in (0, 5, ENTRY_SIZE, size - 1):
        assert at_once(upgraded(data[:end], BatchTarget(PLENTY))) is None
    for end in (size, 2 * size - 1):
        assert list(records(made(data[:end]))) == ROWS[:1]


@BY_FORM
def test_a_wrong_outer_crc_is_corrupt(magic: int, codec: Codec) -> None:
    data = bytearray(handmade_set(ROWS, magic, codec))
    data[-1] ^= 1
    assert refused(bytes(data)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@BY_MAGIC
def test_inner_crcs_are_checked(magic: int, codec: Codec) -> None:
    inner = bytearray(handmade_set(ROWS, magic, Codec.NONE))
    inner[-1] ^= 1
    assert refused(wrapped(bytes(inner), magic, codec)) == ErrorCode.CORRUPT_MESSAGE


@BY_MAGIC
def test_impossible_sizes_are_invalid(magic: int) -> None:
    """
    A message too short for any, one that ends within its value, and one with bytes behind it are INVALID_RECORD.
    """
    data = handmade_set(ROWS[:1], magic, Codec.NONE)
    assert refused(data[:8] + b"\0\0\0\x0d" + data[12:]) == ErrorCode.INVALID_RECORD
    for size, rest in ((len(data) - 1, b""), (len(data) + 1, b"x")):
        longer = data[:8] + (size - ENTRY_SIZE).to_bytes(4, "big") + data[12:size] + rest
        assert refused(recrc(longer)) == ErrorCode.INVALID_RECORD


def test_a_set_has_one_magic() -> None:
    """
    Another one, also inside a compressed message, is INVALID_RECORD, and an unknown one CORRUPT_MESSAGE.
    """
    old, newer = (handmade_set(ROWS[:1], magic, Codec.NONE) for magic in (0, 1))
    assert refused(old + newer) == refused(newer + built(ROWS)) == ErrorCode.INVALID_RECORD
    assert refused(wrapped(old, 1, Codec.GZIP)) == ErrorCode.INVALID_RECORD
    assert refused(recrc(old[:16] + b"\3" + old[17:])) == ErrorCode.CORRUPT_MESSAGE


@BY_MAGIC
def test_compressed_messages_stand_alone(magic: int) -> None:
    """
    A compressed message must be the only one of its set and hold uncompressed messages; else it is INVALID_RECORD.
    """
    bare, packed = (handmade_set(ROWS, magic, codec) for codec in (Codec.NONE, Codec.GZIP))
    for several in (bare + packed, packed + bare, packed + packed):
        assert refused(several) == ErrorCode.INVALID_RECORD
    assert refused(wrapped(packed, magic, Codec.LZ4)) == ErrorCode.INVALID_RECORD
    assert refused(wrapped(b"", magic, Codec.LZ4)) == ErrorCode.INVALID_RECORD
    assert refused(entry(0, magic, None, None, 0, Codec.GZIP)) == ErrorCode.INVALID_RECORD
    assert refused(entry(0, magic, None, b"no gzip", 0, Codec.GZIP)) == ErrorCode.INVALID_RECORD


def test_offset_of_a_compressed_message() -> None:
    """
    With magic 1 it is not below that of the last message inside, except for 0, which some versions of librdkafka
    send.
    """
    send = partial(handmade_set, ROWS, 1, Codec.GZIP)
    for offset in (0, 2, 100):
        assert made(send(offset=offset)).header.records_count == 3
    assert refused(send(offset=1)) == ErrorCode.INVALID_RECORD
    assert made(handmade_set(ROWS, 0, Codec.GZIP, offset=1)).header.records_count == 3


@BY_MAGIC
def test_unknown_codecs_and_zstd_are_refused(magic: int) -> None:
    """
    Messages cannot be compressed with zstd.
    """
    assert refused(entry(0, magic, None, b"x", 0, Codec.ZSTD)) == ErrorCode.INVALID_RECORD
    for number in (5, 6, 7):
        assert refused(entry(0, magic, None, b"x", 0, number)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_log_append_time_is_refused(codec: Codec) -> None:
    """
    A message of magic 1 marked LogAppendTime is INVALID_TIMESTAMP. With magic 0 and inside a compressed message the
    mark means nothing.
    """
    mark = LOG_APPEND_TIME_BIT
    assert refused(handmade_set(ROWS, 1, codec, attributes=mark)) == ErrorCode.INVALID_TIMESTAMP
    assert made(handmade_set(ROWS, 0, codec, attributes=mark)).header.attributes == codec
    marked = handmade_set(ROWS, 1, Codec.NONE, attributes=mark)
    assert list(records(made(wrapped(marked, 1, Codec.GZIP)))) == ROWS


def test_sizes_are_limited() -> None:
    """
    Each message, and the resulting batch if it is not compressed, is limited by the topic.
    """
    one = handmade_set([Record(0, 1, None, b"x" * 100)], 0, Codec.NONE)
    assert refused(one, len(one) - 1, Codec.GZIP) == ErrorCode.MESSAGE_TOO_LARGE
    assert made(one, BatchTarget(len(one), Codec.GZIP)).header.records_count == 1
    many = handmade_set([Record(0, 1, None, b"x" * 100)] * 10, 0, Codec.NONE)
    assert refused(many, len(many) // 2) == ErrorCode.MESSAGE_TOO_LARGE
    assert made(many, BatchTarget(len(many))).header.records_count == 10


def test_many_messages_are_converted_in_steps() -> None:
    """
    Among a thousand messages other work gets its turn.
    """
    for codec in (Codec.NONE, Codec.GZIP):
        steps = upgraded(handmade_set(ROWS * 400, 1, codec), BatchTarget(PLENTY))
        pauses, come = 0, None
        try:
            while True:
                call = steps.send(come)
                pauses += call is None
                come = call and call()
        except StopIteration as done:
            assert done.value.header.records_count == 1_200  # noqa: PT017  # no failure: the end of a generator
        assert pauses >= 1_200 // 64
