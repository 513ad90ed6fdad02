"""
Readers of a log during and after compaction.
"""

from errno import EIO
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.log.segments.segment_list import LogEnd
from kgateway.cluster.partition import Isolation, Origin, TimestampAndOffset
from kgateway.records.batch import TimestampType, batches
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import PLENTY, START_MS, fetched, offsets, refusal, result, stored
from tests.broker.log.compaction.jobs import keyed
from tests.broker.log.compaction.topic_model import read_all
from tests.broker.log.compaction.worlds import SIZE, Compacted, altered, told, write
from tests.records.values import batch_of

KEYS = [b"a", b"b"] * 3 + [b"c"]


def read(partition: Any, offset: int) -> "Deferred[Any]":
    """
    Read what only the disk has.
    """
    found = partition.read(offset, PLENTY, Isolation.READ_UNCOMMITTED, True)
    assert isinstance(found, Deferred)
    return found


def slowly(world: Compacted) -> None:
    """
    Make reads wait for the disk from now on.
    """
    world.disk.cold = world.threads.slow = True


def compacted(world: Compacted) -> None:
    """
    Compact everything while others wait for their threads.
    """
    world.threads.slow = False
    world.round()
    world.threads.slow = True


@pytest.mark.parametrize("remove", [False, True])
@pytest.mark.parametrize("offset", range(7))
def test_readers_in_a_thread(offset: int, remove: bool, world: Compacted) -> None:
    """
    A reader that waits for the disk during the swap gets the old or the new batches, whether their files were removed
    or not.
    """
    partition = world.made(file_delete_delay_ms=0 if remove else 60_000)
    write(partition, *KEYS)
    slowly(world)
    waiting = read(partition, offset)
    compacted(world)
    if remove:
        world.clock.advance(0)
    while not waiting.called:
        world.threads.work()
    found = stored(result(waiting))
    assert found[0].header.base_offset <= offset
    assert any(batch.header.records_count for batch in found)
    for batch in found:
        for record in records(batch):
            assert record.key == KEYS[record.offset]


def test_readers_of_a_segment_that_went_with_its_index(world: Compacted) -> None:
    """
    A reader whose new index does not match the old segment reads again, and no damage is logged.
    """
    partition = world.made(segment_bytes=40 * SIZE, index_interval_bytes=0)
    write(partition, *[b"a", b"b"] * 20, b"c")
    slowly(world)
    waiting = [read(partition, offset) for offset in (0, 30, 39)]
    compacted(world)
    with capturedLogs() as events:
        while not all(one.called for one in waiting):
            world.threads.work()
    for one, offset in zip(waiting, (0, 30, 39), strict=True):
        found = stored(result(one))
        assert found[0].header.base_offset <= offset <= found[-1].header.last_offset
    assert not told(events, "error")


def test_readers_of_records_that_were_deleted(world: Compacted) -> None:
    """
    A reader that waited for records now below the log start gets an error.
    """
    partition = world.made()
    write(partition, *KEYS)
    slowly(world)
    partition.segment_list.segments[0].indexes.unload()
    waiting = read(partition, 0)
    world.threads.slow = False
    result(partition.delete_before(4))
    world.disk.failing["read_at"] = EIO
    world.threads.work()
    assert refusal(lambda: waiting).code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_who_asks_again_may_be_refused(world: Compacted) -> None:
    """
    What cannot be read after the swap either is reported as always.
    """
    partition = world.made()
    write(partition, *KEYS)
    slowly(world)
    waiting = read(partition, 0)
    compacted(world)
    world.disk.failing["read_at"] = EIO
    with capturedLogs() as events:
        while len(world.threads):
            world.threads.work()
    assert refusal(lambda: waiting).code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(told(events, "error")) == 1


@pytest.mark.parametrize("cold", [False, True])
def test_no_answer_of_empty_batches_alone(cold: bool, world: Compacted) -> None:
    """
    A response that begins with batches without records has a record too, if need be from another segment: librdkafka
    would otherwise take it for a record that did not fit.
    """
    partition = world.made()
    write(partition, *[b"a"] * 20, b"b")
    world.round()
    world.disk.cold = cold
    for offset in range(20):
        for max_bytes in (1, SIZE, PLENTY):
            found = stored(fetched(partition, offset, max_bytes, at_least_one=True))
            assert next(record.offset for batch in found for record in records(batch)) in (19, 20)
    assert [record.offset for record in read_all(partition)] == [19, 20]


def test_empty_batches_before_a_record_are_given_with_it(world: Compacted) -> None:
    """
    What is read at once is not cut.
    """
    partition = world.made(segment_bytes=3 * SIZE)
    write(partition, b"a", b"a", b"b", b"c")
    world.round()
    assert offsets(fetched(partition, 0)) == [0, 1, 2]
    assert [batch.header.records_count for batch in stored(fetched(partition, 0))] == [0, 1, 1]


def test_nothing_but_empty_batches(world: Compacted) -> None:
    """
    The response is empty if no record is left before the end.
    """
    partition = world.made()
    write(partition, *[b"a"] * 4, b"b")
    world.round()
    partition.high_watermark, partition._committed_end = 2, LogEnd(2, 2, 0)
    for cold in (False, True):
        world.disk.cold = cold
        assert fetched(partition, 0).batches == []
    partition.high_watermark, partition._committed_end = 5, partition.segment_list.end
    assert offsets(fetched(partition, 0)) == [2, 3]


@pytest.mark.parametrize("late", [False, True])
def test_time_searches_in_a_thread(late: bool, world: Compacted) -> None:
    """
    A search during the swap finds the record where it is in the end.
    """
    partition = world.made(file_delete_delay_ms=0)
    for n, key in enumerate(KEYS):
        write(partition, key, timestamp=START_MS + n)
    altered(partition, segment_bytes=100 * SIZE)  # most of the files are gone then
    slowly(world)
    waiting = {time: partition.find_time(START_MS + time) for time in range(8)}
    most = partition.find_max_time()
    if late:
        for _ in range(3):
            world.threads.work()
    compacted(world)
    world.clock.advance(0)
    while len(world.threads):
        world.threads.work()
    for time, one in waiting.items():
        there = [n for n in ((time,) if late and time < 3 else (4, 5, 6)) if n >= time]
        assert result(one) == (TimestampAndOffset(there[0], START_MS + there[0], 0) if there else None), time
    assert result(most) == TimestampAndOffset(6, START_MS + 6, 0)


def test_time_search_that_fails(world: Compacted) -> None:
    """
    A file that is missing without a swap is reported as always.
    """
    partition = world.made()
    write(partition, *KEYS)
    for segment in partition.segment_list.segments[:2]:
        segment.path.unlink()
    partition.segment_list.files.close_all()
    assert refusal(lambda: partition.find_time(START_MS)).code is ErrorCode.KAFKA_STORAGE_ERROR


def test_times_of_what_is_left(world: Compacted) -> None:
    """
    Records keep their offsets and timestamps, even if others of their batch were removed, or the batch has a delete
    horizon.
    """
    partition = world.made(segment_bytes=300)
    times = [START_MS + n for n in (5, 1, 9, 3)]
    rows = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", None)]
    sent = batch_of([Record(n, time, *row) for n, (time, row) in enumerate(zip(times, rows, strict=True))])
    partition.append(sent, Origin.CLIENT)
    write(partition, b"a", b"c", b"x", b"x", b"y", timestamp=START_MS + 4)
    world.round()
    left = [record for record in read_all(partition) if record.offset < 4]
    assert [(record.offset, record.timestamp) for record in left] == [(1, START_MS + 1), (3, START_MS + 3)]
    found = {time: result(partition.find_time(START_MS + time)) for time in (0, 1, 2, 3, 4, 5)}
    assert {time: one and one.offset for time, one in found.items()} == {0: 1, 1: 1, 2: 3, 3: 3, 4: 4, 5: None}
    assert result(partition.find_max_time()) == TimestampAndOffset(4, START_MS + 4, 0)


def test_times_from_a_log_start_within_a_batch(world: Compacted) -> None:
    """
    Records below the log start are not found, even if their batch is there.
    """
    partition = world.made(segment_bytes=300)
    write(partition, b"z")
    partition.append(keyed(b"a", b"b", b"c", b"d"), Origin.CLIENT)
    write(partition, b"c", b"x", b"y", b"y", timestamp=START_MS)
    world.round()
    result(partition.delete_before(2))
    assert result(partition.find_time(START_MS)) == TimestampAndOffset(2, START_MS + 1, 0)
    result(partition.delete_before(3))
    assert result(partition.find_time(START_MS + 1)) == TimestampAndOffset(4, START_MS + 3, 0)


def test_times_of_appends(world: Compacted) -> None:
    """
    With LogAppendTime the first record left has the time of its batch.
    """
    partition = world.made(segment_bytes=300, timestamp_type=TimestampType.LOG_APPEND_TIME)
    partition.append(keyed(b"a", b"b", b"c"), Origin.CLIENT)
    world.now_ms += 10
    write(partition, b"a", b"x", b"y", b"y")
    world.round()
    assert result(partition.find_time(1)) == TimestampAndOffset(1, START_MS, 0)


def test_loaded_indexes_go_with_their_segments(world: Compacted) -> None:
    """
    The indexes of replaced segments are freed.
    """
    partition = world.made()
    write(partition, *KEYS)
    fetched(partition, 0)
    partition._reader.loaded(partition.segment_list.segments[0])
    old = partition.segment_list.segments[0]
    altered(partition, segment_bytes=100 * SIZE)
    world.round()
    assert old not in partition._runtime.loaded._segments
    partition._reader.loaded(old)
    assert old not in partition._runtime.loaded._segments
    assert [batch for data in fetched(partition, 0).batches for batch in batches(data)]
