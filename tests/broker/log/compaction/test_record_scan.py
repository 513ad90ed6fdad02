"""
Keys and records found in regular batches, compared with what is found one by one.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgateway.broker.log.compaction.compaction_round import compact_with
from kgateway.broker.log.compaction.record_filter import RecordFilter
from kgateway.broker.log.compaction.record_scan import entries_at, keys_of
from kgateway.records.batch import HEADER_SIZE, Batch
from kgateway.records.record import Entry, Payload, Record, entries, payload_of
from kgateway.wire.errors import Malformed
from tests.broker.log.compaction.histories import ANY_BATCH, BATCH, LONG_TIMESTAMP, History, histories
from tests.broker.log.compaction.jobs import Jobs, keyed
from tests.broker.log.compaction.readers import ROOM, one_by_one, plain
from tests.broker.log.compaction.test_column_reader import result
from tests.records.handmade_batches import body
from tests.records.values import batch_of


def found(data: bytes, pos: int, count: int) -> list[Entry] | None:
    """
    The entries, if the batch can be read and is regular.
    """
    try:
        rows = list(entries(Payload(data, pos), count))
    except Malformed:
        return None
    is_regular = all(delta == number and key is not None for number, (_, _, delta, key, _) in enumerate(rows))
    return rows if is_regular else None


def check(data: bytes, pos: int, count: int) -> None:
    expected, keys = found(data, pos, count), keys_of(data, pos, count)
    assert keys == (None if expected is None else [key for *_, key, _ in expected])
    if expected is not None:
        for step in (1, 2, 3):
            rows = [(start, end, delta, None, has_value) for start, end, delta, _, has_value in expected[::step]]
            assert entries_at(data, pos, range(0, count, step)) == rows


@given(history=histories(BATCH), room=st.integers(1, 12) | st.just(ROOM))
def test_same_result(history: History, room: int) -> None:
    """
    The reader without numpy writes the same bytes as the plainest one.
    """
    assert result(history, one_by_one(room)) == result(history, plain(room))


@given(history=histories(ANY_BATCH))
def test_same_result_of_damaged_batches(history: History) -> None:
    assert result(history, one_by_one()) == result(history, plain())


@given(batch=ANY_BATCH)
def test_same_records(batch: Batch) -> None:
    """
    Batches are regular or not, whatever is in them.
    """
    try:
        payload = payload_of(batch)
    except Malformed:
        return
    check(*payload, batch.header.records_count)


_WIDE = [Record(number, number * 5000, b"k" * (number % 90), b"v" * (number * 7)) for number in range(200)]


@given(
    at=st.integers(0, 8000),
    byte=st.integers(0, 255),
    cut=st.integers(0, 60) | st.just(0),
    more=st.binary(max_size=12),
    extra=st.integers(-2, 2),
)
@example(0, 0, 0, b"", 0)
def test_damage(at: int, byte: int, cut: int, more: bytes, extra: int) -> None:
    """
    Wherever a byte is changed, or bytes are missing or too many, nothing else is found than one by one, and nothing
    outside of the bytes is read.
    """
    whole = bytearray(batch_of(_WIDE[:40]).data)
    if at:
        whole[HEADER_SIZE + at % (len(whole) - HEADER_SIZE)] = byte
    check(bytes(whole[: len(whole) - cut] + more), HEADER_SIZE, 40 + extra)


@given(data=st.lists(st.sampled_from([0, 1, 2, 4, 6, 8, 14, 16, 127, 128, 129, 130, 255]), max_size=60))
def test_any_bytes(data: list[int]) -> None:
    for count in range(-1, 4):
        check(bytes(data), 0, count)


def test_long_numbers() -> None:
    """
    Deltas of two and three bytes, lengths of up to three, and keys of two.
    """
    check(bytes(batch_of(_WIDE).data), HEADER_SIZE, 200)
    many = batch_of([Record(number, 0, b"%d" % number, b"") for number in range(9000)])
    check(bytes(many.data), HEADER_SIZE, 9000)
    check(bytes(batch_of([Record(0, 0, b"k" * 20_000, b"v" * 3_000_000)]).data), HEADER_SIZE, 1)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"\xff\xff\xff\xff\xff\x0f" + body(0, b"a"), 1),  # a length of 35 bits
        (b"\xfe\xff\xff\xff\x0f\0\0\0\2a\1\0", 1),  # a length of 32 bits
        (b"\x12\0\0\0\xfe\xff\xff\xff\x0fa", 1),  # a key of 2 GiB
        (b"\x10\0\0\0\x14a\1\0", 1),  # a key longer than its record
        (LONG_TIMESTAMP.replace(b"\1\2\2a", b"\1\0\2a"), 1),
        (b"\x10\0" + b"\xff" * 7, 1),  # a timestamp without an end
        (b"\x14\0\0\x80\0\2a\1\0\0\0", 1),  # a delta of more bytes than it needs
    ],
)
def test_impossible_numbers(data: bytes, count: int) -> None:
    check(data, 0, count)


def test_wrong_places() -> None:
    """
    A place behind the last record is an IndexError.
    """
    data = body(0, b"a")
    with pytest.raises(IndexError):
        entries_at(data, 0, [1])


def test_a_round_that_begins_within_a_batch(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After a full round, the next one searches only this batch for keys in the second pass, not the dirty ones after it.
    """
    jobs.write([keyed(b"a", b"b", b"c")], [keyed(b"a", b"b"), keyed(b"c")])
    searched = list[int]()

    def by_records(rules: RecordFilter, batch: Batch) -> Batch | None:
        searched.append(batch.header.base_offset)
        return batch

    monkeypatch.setattr(RecordFilter, "by_records", by_records)
    compact_with(one_by_one(), jobs.job(first_dirty=1), jobs.disk)
    assert searched == [0, 5]  # the last batch has the last record, which is kept in any case
