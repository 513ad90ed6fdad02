"""
Message sets on their way out, against kafka-python's reader of them.
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
from kgateway.records.downgraded import MessageSet, downgraded
from kgateway.records.message_set import message_at, places
from kgateway.records.record import Header, Record, records
from kgateway.records.steps import at_once
from kgateway.records.upgraded import Target, upgraded
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.records.old_sets import FORMS, JUDGED_FORMS, known, read_by_judge
from tests.records.sealed import sealed
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


@pytest.mark.parametrize(("magic", "codec"), JUDGED_FORMS)
def test_judged_sets(magic: int, codec: Codec) -> None:
    """
    kafka-python's consumer reads all records of our batches, with their offsets.
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
def test_there_and_back(magic: int, codec: Codec) -> None:
    """
    A set of ours is a set that we take, the broken lz4 of magic 0 included.
    """
    made = joined(converted(built(ROWS, codec=codec), magic=magic))
    batch = at_once(upgraded(made, Target(PLENTY)))
    assert batch
    assert list(records(batch)) == known(ROWS, magic)
    assert batch.header.codec is codec


@BY_FORM
def test_form(magic: int, codec: Codec) -> None:
    """
    What is compressed is one message with the last offset and the largest timestamp; inside, offsets are those of the
    log with magic 0, and count from the first one with magic 1. What is not compressed is a message for each record.
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
        assert (message.value or b"")[6] == (0x82 if magic else 0x1A)  # the check byte, wrong as Kafka has it
    if codec is Codec.GZIP:
        inner = zlib.decompress(message.value or b"", 31)
        assert [place for place, *_ in places(inner)] == ([0, 1, 2, 3] if magic else [10, 11, 12, 13])


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_log_append_time(codec: Codec) -> None:
    """
    With magic 1 messages are marked and have the one timestamp; magic 0 knows neither.
    """
    batch = built(ROWS, codec=codec, log_append_time_ms=77)
    data = joined(converted(batch))
    assert {record.timestamp for record in read_by_judge(data)} == {77}
    assert {message_at(data, start, end).attributes for _, start, end in places(data)} == {LOG_APPEND_TIME_BIT | codec}
    data = joined(converted(batch, magic=0))
    assert {message_at(data, start, end).attributes for _, start, end in places(data)} == {codec}


@BY_MAGIC
def test_from_an_offset(magic: int) -> None:
    """
    What is not compressed begins with the offset asked for; a compressed batch stays whole.
    """
    bare = joined(converted(built(ROWS), magic=magic, offset=2))
    assert [record.offset for record in read_by_judge(bare)] == [2, 3]
    packed = joined(converted(built(ROWS, codec=Codec.GZIP), magic=magic, offset=2))
    assert [record.offset for record in read_by_judge(packed)] == [0, 1, 2, 3]


def test_control_batches() -> None:
    """
    Markers of transactions are left out, and so is a batch of which compaction has left nothing, and the client goes on
    behind them.
    """
    for codec in (Codec.NONE, Codec.ZSTD):
        marker = BatchBuilder(is_control=True, is_transactional=True, codec=codec)
        marker.append(b"\0\0\0\1", b"\0\0\0\0\0\0", timestamp=1)
        made = converted(marker.build(), BatchBuilder(base_offset=9).build())
        assert (made.parts, made.size, made.end) == ([], 0, 10)
        assert converted(marker.build(), built(ROWS, base_offset=1)).end == 5


def test_zstd() -> None:
    """
    Where zstd comes first it is refused; behind others it is left for the next fetch, in which it comes first.
    """
    packed = built(ROWS, codec=Codec.ZSTD, base_offset=4)
    assert refused(packed, offset=4) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    made = converted(built(ROWS), packed)
    assert (len(read_by_judge(joined(made))), made.end) == (4, 4)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_no_more_than_asked_for(codec: Codec) -> None:
    """
    A set ends where it has as many bytes as were asked for, and has a first message in any case.
    """
    first, second = built(ROWS, codec=codec), built(ROWS, codec=codec, base_offset=4)
    whole = joined(converted(first))
    assert joined(converted(first, second, bytes_max=len(whole))) == whole
    assert converted(first, second, bytes_max=PLENTY).size == 2 * len(whole)
    smallest = read_by_judge(joined(converted(first, second, bytes_max=1)))
    assert len(smallest) == (1 if codec is Codec.NONE else 4)
    if codec is Codec.NONE:
        assert len(read_by_judge(joined(converted(first, second, bytes_max=len(whole) - 1)))) == 3


def test_nothing_is_left_out() -> None:
    """
    Where a batch has not all of its place, none of the next one is sent, be its records small enough.
    """
    large = [Record(n, 1, None, b"x" * 500) for n in range(2)]
    small = built([Record(0, 1, None, b"")], base_offset=2)
    made = converted(built(large), small, bytes_max=700)
    assert [record.offset for record in read_by_judge(joined(made))] == [0]


def test_given_up() -> None:
    """
    Once nobody wants it any more, no further batch is converted.
    """
    answers = iter([False, True])
    made = converted(built(ROWS), built(ROWS, base_offset=4), given_up=lambda: next(answers))
    assert made.end == 4


def test_what_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A compressed batch that makes more messages than there is memory for is MESSAGE_TOO_LARGE.
    """
    monkeypatch.setattr("kgateway.records.downgraded.RECORDS_BYTES_MAX", 1_000)
    assert refused(built(ROWS * 10, codec=Codec.GZIP)) == ErrorCode.MESSAGE_TOO_LARGE
    assert converted(built(ROWS * 4, codec=Codec.GZIP)).size


def test_damage() -> None:
    """
    A batch whose records cannot be read is CORRUPT_MESSAGE.
    """
    assert refused(built(ROWS)[:-1]) == ErrorCode.CORRUPT_MESSAGE
    more = sealed(read_batch(built(ROWS)), records_count=5, last_offset_delta=4)
    assert refused(bytes(more.data)) == ErrorCode.CORRUPT_MESSAGE


def test_many_records_go_in_steps() -> None:
    """
    Among a thousand records there are places to let others go on.
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
            assert pauses >= 1_200 // 64  # no failure: the end of a generator
