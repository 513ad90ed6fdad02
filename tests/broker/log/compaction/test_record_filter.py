"""
Which records of a batch are kept, by Kafka's rules.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from kgateway.broker.log.compaction.record_filter import (
    LastBatch,
    LastOffsets,
    RecordFilter,
    RoundTimes,
    TransactionEnds,
)
from kgateway.records.batch import Batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import holding
from tests.records.values import batch_of

NOW_MS, RETENTION_MS = 1_000_000, 500
FAR = 1_000_000

Row = tuple[bytes | None, bytes | None]


def batch(base: int, *rows: Row, **options: Any) -> Batch:
    """
    Keys and values at consecutive offsets from this one on.
    """
    sent = batch_of([Record(n, 10 + n, key, value) for n, (key, value) in enumerate(rows)], **options)
    return sealed(sent, base_offset=base)


def rules(
    latest: Mapping[bytes, int] | None = None, *, end: int = FAR, log_start: int = 0, now_ms: int = NOW_MS, **last: int
) -> RecordFilter:
    """
    The rules of a round that knows these keys; `last7=5` means that the last batch of producer 7 ends with offset 5.
    """
    known = LastOffsets(1000)
    for key, offset in (latest or {}).items():
        known.note(key, offset)
    known.end = end
    producers = {int(name.removeprefix("last")): LastBatch(0, offset) for name, offset in last.items()}
    return RecordFilter(known, log_start, RoundTimes(now_ms, RETENTION_MS), producers, TransactionEnds([]))


def offsets(left: Batch | None) -> list[int]:
    assert left
    return [record.offset for record in records(left)]


AB: tuple[Row, Row] = ((b"a", b"1"), (b"b", b"2"))


@pytest.mark.parametrize("codec", Codec)
def test_superseded_records_go(codec: Codec) -> None:
    """
    A record is removed if a later one of its key is known, tombstones included.
    """
    assert offsets(rules({b"a": 7, b"b": 6}).left_of(batch(5, *AB, codec=codec))) == [6]
    assert offsets(rules({b"a": 5, b"b": 9}).left_of(batch(5, *AB, codec=codec))) == [5]


def test_batches_of_which_all_stays() -> None:
    """
    They are the same objects.
    """
    whole = batch(5, *AB)
    assert rules({b"a": 5, b"b": 6}).left_of(whole) is whole
    assert rules().left_of(whole) is whole


def test_batches_of_which_nothing_stays() -> None:
    assert rules({b"a": 7, b"b": 8}).left_of(batch(5, *AB)) is None


def test_records_without_a_key_go() -> None:
    """
    They are the last of no key.
    """
    assert offsets(rules().left_of(batch(5, (None, b"1"), (b"a", b"2"), (None, None)))) == [6]


def test_very_last_record_stays() -> None:
    """
    The record at the end of the known part is kept even without a key, so that readers have a record to reach.
    """
    assert offsets(rules({b"a": 7}, end=8).left_of(batch(6, (None, b"1"), (None, b"2")))) == [7]


def test_what_is_not_known_yet_stays() -> None:
    """
    Records at the end of the known part and behind it are kept, in a batch across the border as in one behind.
    """
    known = {b"a": 3, b"b": 3}
    assert offsets(rules(known, end=4).left_of(batch(1, *AB, *AB))) == [3, 4]
    assert offsets(rules({b"a": 9, b"b": 9}, end=3).left_of(batch(1, *AB, *AB))) == [2, 3, 4]
    behind = batch(4, (None, b"1"))
    assert rules(known, end=4).left_of(behind) is behind


@pytest.mark.parametrize(
    "wrong",
    [
        holding(b"no records", 2),
        sealed(holding(b"", 2), attributes=6),
        sealed(batch(5, *AB), records_count=3),
    ],
    ids=["bytes", "codec", "count"],
)
def test_unreadable_batches_stay(wrong: Batch) -> None:
    """
    A batch with unreadable records is kept unchanged and counted; its records are not.
    """
    here = rules({b"a": 900, b"b": 901})
    unreadable = sealed(wrong, base_offset=5, last_offset_delta=1)
    assert here.left_of(unreadable) is unreadable
    assert (here.unreadable, here.records_seen, here.records_kept) == (1, 0, 0)


def test_timestamps_that_cannot_be_kept() -> None:
    """
    A batch that cannot be rewritten, because the time of a record is unknown, is kept too.
    """
    two = [b"\x24\0" + b"\x80" * 10 + b"\0" + delta + b"\2k\2v\0" for delta in (b"\0", b"\2")]
    strange = sealed(holding(b"".join(two), 2), base_offset=5, last_offset_delta=1)
    here = rules({b"k": 6})
    assert here.left_of(strange) is strange
    assert here.unreadable == 1


def test_records_before_the_log_start() -> None:
    """
    A batch wholly below it is removed, even an unreadable one; the batch that contains it is filtered like others.
    """
    for whole in (batch(5, *AB), sealed(holding(b"?", 2), base_offset=5)):
        assert rules(log_start=7).left_of(whole) is None
    whole = batch(5, *AB)
    assert rules(log_start=6).left_of(whole) is whole


PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 4}


def test_last_batch_of_a_producer_stays_as_a_header() -> None:
    """
    It has the producer's next sequence number.
    """
    left = rules({b"a": 8, b"b": 9}, last7=6).left_of(batch(5, *AB, **PRODUCER))
    assert left
    header = left.header
    assert (header.records_count, header.last_offset, header.producer_id, header.base_sequence) == (0, 6, 7, 4)


@pytest.mark.parametrize("last", [{"last7": 9}, {"last8": 6}, {"last7": 5}, {}])
def test_other_batches_of_producers_go(last: dict[str, int]) -> None:
    """
    They are removed if they are not the last of their producer, or the producer was forgotten.
    """
    assert rules({b"a": 8, b"b": 9}, **last).left_of(batch(5, *AB, **PRODUCER)) is None


def test_empty_batches() -> None:
    """
    The header of a producer's last batch is kept until there is a later one, and batches that cover removed ones are
    removed.
    """
    first = rules({b"a": 8, b"b": 9}, last7=6).left_of(batch(5, *AB, **PRODUCER))
    assert first
    assert rules(last7=6).left_of(first) is first
    assert rules(last7=9).left_of(first) is None
    assert rules().left_of(sealed(first, producer_id=-1)) is None


DELETED: tuple[Row, Row] = ((b"a", None), (b"b", b"1"))


def test_tombstones_get_a_horizon() -> None:
    """
    The first round that meets a tombstone keeps it and sets its horizon, even if nothing else in the batch changes.
    """
    left = rules().left_of(batch(5, *DELETED))
    assert offsets(left) == [5, 6]
    assert left
    assert (left.header.has_delete_horizon, left.header.base_timestamp) == (True, NOW_MS + RETENTION_MS)
    assert [record.timestamp for record in records(left)] == [10, 11]


@pytest.mark.parametrize(("now_ms", "shown"), [(NOW_MS + RETENTION_MS - 1, True), (NOW_MS + RETENTION_MS, False)])
def test_tombstones_go_at_their_horizon(now_ms: int, shown: bool) -> None:
    """
    It is kept until then and removed in the first round after; the horizon does not move.
    """
    first = rules().left_of(batch(5, *DELETED))
    assert first
    second = rules(now_ms=now_ms).left_of(first)
    assert offsets(second) == ([5, 6] if shown else [6])
    assert (second is first) == shown
    assert second
    assert second.header.base_timestamp == NOW_MS + RETENTION_MS


@pytest.mark.parametrize(("stay_from", "shown"), [(5, True), (6, True), (7, False)])
def test_deletions_that_a_snapshot_needs_stay(stay_from: int, shown: bool) -> None:
    """
    From an offset on they are kept whatever their horizon.
    """
    first = rules().left_of(batch(5, *DELETED))
    assert first
    late = RoundTimes(NOW_MS + RETENTION_MS, RETENTION_MS, stay_from)
    again = rules()
    again.times = late
    assert offsets(again.left_of(first)) == ([5, 6] if shown else [6])


def test_superseded_tombstones_go() -> None:
    """
    They are removed at once, and set no horizon.
    """
    left = rules({b"a": 9}).left_of(batch(5, *DELETED))
    assert offsets(left) == [6]
    assert left
    assert not left.header.has_delete_horizon


def test_very_last_tombstone_stays() -> None:
    """
    It is kept beyond its horizon.
    """
    first = rules().left_of(batch(5, (b"a", None)))
    assert first
    assert offsets(rules(end=6, now_ms=NOW_MS * 2).left_of(first)) == [5]
    assert rules(end=7, now_ms=NOW_MS * 2).left_of(first) is None


def test_records_are_counted() -> None:
    """
    Examined records and kept ones are counted; unknown ones are neither.
    """
    here = rules({b"a": 6}, end=20)
    here.left_of(batch(5, *AB))
    here.left_of(batch(7, (None, b"1")))
    here.left_of(batch(30, *AB))
    assert (here.records_seen, here.records_kept, here.unreadable) == (3, 1, 0)
