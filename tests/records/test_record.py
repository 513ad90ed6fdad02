"""
Records read from whole batches.
"""

import pytest
from hypothesis import given

from kgateway.records.batch import HEADER_SIZE, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record, records
from tests.records.handmade_batches import body, holding
from tests.records.values import JAVA_BATCHES, JAVA_RECORDS, SAMPLE, batch_of, record_lists, with_header


@pytest.mark.parametrize("codec", Codec)
def test_java_batches_are_read(codec: Codec) -> None:
    """
    Every codec gives the original records.
    """
    assert list(records(read_batch(b"__" + JAVA_BATCHES[codec], 2))) == JAVA_RECORDS


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists())
def test_records_round_trip(codec: Codec, rows: list[Record]) -> None:
    assert list(records(batch_of(rows, codec=codec))) == rows


def test_offsets_count_from_the_base() -> None:
    """
    Offsets are those of the log, even where compaction has left gaps.
    """
    batch = with_header(batch_of(SAMPLE), base_offset=1 << 40)
    assert [record.offset for record in records(batch)] == [(1 << 40) + n for n in range(4)]
    kept = body(offset_delta=3) + body(offset_delta=9)
    sparse = with_header(holding(kept, 2), base_offset=100, last_offset_delta=12)
    assert [record.offset for record in records(sparse)] == [103, 109]


def test_log_append_time_is_that_of_all_records() -> None:
    """
    It is the max timestamp of the batch.
    """
    batch = batch_of(SAMPLE, log_append_time_ms=7_777)
    assert [record.timestamp for record in records(batch)] == [7_777] * 4


def test_a_delete_horizon_is_the_base_of_timestamps() -> None:
    """
    Compaction stores its horizon in the base timestamp.
    """
    batch = with_header(batch_of(SAMPLE), attributes=0x40, base_timestamp=500)
    assert [record.timestamp for record in records(batch)] == [500, 490, 4_500, 1_500]


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_without_records_is_read(codec: Codec) -> None:
    """
    Compaction leaves such batches, which are no error.
    """
    assert list(records(with_header(batch_of([]), attributes=int(codec)))) == []


def test_broken_header_keys_survive() -> None:
    """
    A key that is not UTF-8 is written as the bytes it was read from.
    """
    broken = b"caf\xe9 \xff\xed\xa0\x80\xc3\xa9"
    (record,) = records(holding(body(headers=[(broken, b"v")]), 1))
    ((key, value),) = record.headers
    assert (key[:3], key[-1], value) == ("caf", "é", b"v")
    assert key.encode(errors="surrogateescape") == broken
    assert list(records(batch_of([record]))) == [record]


def test_handmade_records_have_the_form_of_the_builder() -> None:
    rows = [Record(0, 0, b"key", None, (Header("h", b"v"),))]
    assert batch_of(rows).data[HEADER_SIZE:] == body(key=b"key", headers=[(b"h", b"v")])
