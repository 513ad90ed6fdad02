"""
Conversion to message sets for old consumers, compared with kafka-python's reader.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.records.batch import LOG_APPEND_TIME_BIT, read_batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.from_message_set import BatchTarget, upgraded
from kgateway.records.message_set import message_at, places
from kgateway.records.record import Header, Record, records
from kgateway.records.slices import at_once
from kgateway.records.to_message_set import MessageSet, downgraded
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.records.crc_batches import sealed
from tests.records.old_message_sets import FORMS, JUDGED_FORMS, known, read_by_judge
from tests.records.values import built, record_lists

PLENTY = 1 << 20
BY_FORM = pytest.mark.parametrize(("magic", "codec"), FORMS)
BY_MAGIC = pytest.mark.parametrize("magic", [0, 1])
ROWS = [Record(n, 1_000 - n, b"key %d" % n, b"value", (Header("h", b"gone"),)) for n in range(4)]


def converted(*batches: bytes, magic: int = 1, offset: int = 0, bytes_max: int = PLENTY, **more: Any) -> MessageSet:
    return at_once(downgraded(batches, magic, offset, bytes_max, **more))


def joined(made: MessageSet) -> bytes:
    data = b"".join(made.parts)
    assert len(data) == made.size
    return data


def at(rows: Sequence[Record], base: int) -> list[Record]:
    return [row._replace(offset=base + row.offset) for row in rows]


def refused(*batches: bytes, **more: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        converted(*batches, **more)
    return caught.value.code


@pytest.mark.hypothesis
@pytest.mark.parametrize(("magic", "codec"), JUDGED_FORMS)
def test_kafka_python_reads_our_sets(magic: int, codec: Codec) -> None:
    """
    Its consumer gets all records with their offsets.
    """

    @given(st.lists(record_lists(min_size=1), min_size=1, max_size=3), st.integers(0, 1 << 40))
    def check(lists: list[list[Record]], base: int) -> None:
        batches, expected, end = [], [], base
        for rows in lists:
            batches.append(built(rows, codec=codec, base_offset=end))
            expected += at(rows, end)
            end += len(rows)
        made = converted(*batches, magic=magic, offset=base)
        assert read_by_judge(joined(made)) == known(expected, magic)
        assert made.end == end

    check()


@BY_FORM
def test_sets_round_trip(magic: int, codec: Codec) -> None:
    """
    Our sets can be produced to us, including the broken lz4 of magic 0.
    """
    made = joined(converted(built(ROWS, codec=codec), magic=magic))
    batch = at_once(upgraded(made, BatchTarget(PLENTY)))
    assert batch
    assert list(records(batch)) == known(ROWS, magic)
    assert batch.header.codec is codec


@BY_FORM
def test_offsets_and_compression(magic: int, codec: Codec) -> None:
    """
    Compressed records are one message with the last offset and the largest timestamp; offsets inside are those of the
    log with magic 0, and relative with magic 1. Uncompressed records are one message each.
    """
    data = joined(converted(built(ROWS, codec=codec, base_offset=10), magic=magic))
    messages = [(offset, message_at(data, start, end)) for offset, start, end in places(data)]
    assert {message.magic for _, message in messages} == {magic}
    assert {message.attributes for _, message in messages} == {codec}
    if codec is Codec.NONE:
        assert [offset for offset, _ in messages] == [10, 11, 12, 13]
        return
    [(offset, message)] = messages
    assert (offset, message.key, message.timestamp) == (13, None, 1_000 if magic else -1)
    if codec is Codec.LZ4:
        assert (message.value or b"")[6] == (0x82 if magic else 0x1A)  # the checksum, wrong as in Kafka
    if codec is Codec.GZIP:
        inner = zlib.decompress(message.value or b"", 31)
        assert [place for place, *_ in places(inner)] == ([0, 1, 2, 3] if magic else [10, 11, 12, 13])


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_log_append_time(codec: Codec) -> None:
    """
    With magic 1 messages are marked and share one timestamp; magic 0 has neither.
    """
    batch = built(ROWS, codec=codec, log_append_time_ms=77)
    data = joined(converted(batch))
    assert {record.timestamp for record in read_by_judge(data)} == {77}
    assert {message_at(data, start, end).attributes for _, start, end in places(data)} == {LOG_APPEND_TIME_BIT | codec}
    data = joined(converted(batch, magic=0))
    assert {message_at(data, start, end).attributes for _, start, end in places(data)} == {codec}


@BY_MAGIC
def test_sets_begin_at_the_offset(magic: int) -> None:
    """
    Uncompressed sets begin at the fetch offset; compressed batches are not split.
    """
    bare = joined(converted(built(ROWS), magic=magic, offset=2))
    assert [record.offset for record in read_by_judge(bare)] == [2, 3]
    packed = joined(converted(built(ROWS, codec=Codec.GZIP), magic=magic, offset=2))
    assert [record.offset for record in read_by_judge(packed)] == [0, 1, 2, 3]


def test_control_and_empty_batches_are_skipped() -> None:
    """
    Transaction markers and batches emptied by compaction are left out, and the client continues behind them.
    """
    for codec in (Codec.NONE, Codec.ZSTD):
        marker = BatchBuilder(is_control=True, is_transactional=True, codec=codec)
        marker.append(b"\0\0\0\1", b"\0\0\0\0\0\0", timestamp=1)
        made = converted(marker.build(), BatchBuilder(base_offset=9).build())
        assert (made.parts, made.size, made.end) == ([], 0, 10)
        assert converted(marker.build(), built(ROWS, base_offset=1)).end == 5


def test_zstd_is_refused_at_the_beginning() -> None:
    """
    Behind other batches it is left for the next fetch.
    """
    packed = built(ROWS, codec=Codec.ZSTD, base_offset=4)
    assert refused(packed, offset=4) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    made = converted(built(ROWS), packed)
    assert (len(read_by_judge(joined(made))), made.end) == (4, 4)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_sets_are_limited(codec: Codec) -> None:
    """
    A set ends at the requested size, and has one message at least.
    """
    first, second = built(ROWS, codec=codec), built(ROWS, codec=codec, base_offset=4)
    whole = joined(converted(first))
    assert joined(converted(first, second, bytes_max=len(whole))) == whole
    assert converted(first, second, bytes_max=PLENTY).size == 2 * len(whole)
    smallest = read_by_judge(joined(converted(first, second, bytes_max=1)))
    assert len(smallest) == (1 if codec is Codec.NONE else 4)
    if codec is Codec.NONE:
        assert len(read_by_judge(joined(converted(first, second, bytes_max=len(whole) - 1)))) == 3


def test_no_batch_is_skipped_for_its_size() -> None:
    """
    A smaller batch behind one that does not fit is not sent.
    """
    large = [Record(n, 1, None, b"x" * 500) for n in range(2)]
    small = built([Record(0, 1, None, b"")], base_offset=2)
    made = converted(built(large), small, bytes_max=700)
    assert [record.offset for record in read_by_judge(joined(made))] == [0]


def test_an_abandoned_conversion_stops() -> None:
    """
    No further batch is converted.
    """
    answers = iter([False, True])
    made = converted(built(ROWS), built(ROWS, base_offset=4), given_up=lambda: next(answers))
    assert made.end == 4


def test_a_batch_that_grows_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A compressed batch with more messages than memory allows is MESSAGE_TOO_LARGE.
    """
    monkeypatch.setattr("kgateway.records.to_message_set.RECORDS_BYTES_MAX", 1_000)
    assert refused(built(ROWS * 10, codec=Codec.GZIP)) == ErrorCode.MESSAGE_TOO_LARGE
    assert converted(built(ROWS * 4, codec=Codec.GZIP)).size


def test_unreadable_batches_are_corrupt() -> None:
    assert refused(built(ROWS)[:-1]) == ErrorCode.CORRUPT_MESSAGE
    more = sealed(read_batch(built(ROWS)), records_count=5, last_offset_delta=4)
    assert refused(bytes(more.data)) == ErrorCode.CORRUPT_MESSAGE


def test_many_records_are_converted_in_steps() -> None:
    """
    Among a thousand records other work gets its turn.
    """
    for codec in (Codec.NONE, Codec.GZIP):
        steps = downgraded([built(ROWS * 300, codec=codec)], 1, 0, PLENTY)
        pauses, come = 0, None
        try:
            while True:
                call = steps.send(come)
                pauses += call is None
                come = call and call()
        except StopIteration:
            assert pauses >= 1_200 // 64  # the normal end of a generator
