"""
Recent batches are compared with a list of them.
"""

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.partition.spool import Spool, SpooledBytes
from kgateway.broker.seaweedmq.publishing.recent_batches import RecentBatches
from kgateway.wire.errors import ErrorCode, KafkaError

PLENTY = 1 << 20
FILES = 16


def filled(recent: RecentBatches, *sizes: int, start: int = 0) -> None:
    """
    Append batches that have as many bytes as offsets, each with a byte of its own.
    """
    for number, size in enumerate(sizes):
        recent.add(bytes([number]) * size, start, start + size)
        start += size


def read(recent: RecentBatches, offset: int) -> bytes:
    return b"".join(recent.read(offset, PLENTY, False, PLENTY))


@pytest.mark.parametrize("bytes_max", [0, PLENTY])
def test_what_is_in_no_file_stays(bytes_max: int) -> None:
    """
    It is kept whatever the memory limit is.
    """
    recent = RecentBatches(Spool(bytes_max), lambda: 0, 0)
    filled(recent, 2, 3, 1)
    recent.let_go()
    assert (recent.start, recent.unflushed, read(recent, 2)) == (0, 6, b"\1\1\1\2")
    assert [*recent.each_from(3)] == [b"\1\1\1", b"\2"]
    recent.flushed_to(2)
    assert (recent.unflushed, read(recent, 5)) == (4, b"\2")
    assert [*recent.all_from(6)] == []


def test_memory_is_bounded() -> None:
    recent = RecentBatches(Spool(0), lambda: 4, 0)
    filled(recent, 2, 3, 1)
    recent.flushed_to(6)
    assert (recent.start, read(recent, 2)) == (2, b"\1\1\1\2")
    recent.add(b"\3", 6, 7)
    recent.let_go()
    assert recent.start == 5, "the new one counts, though it must stay"
    recent.flushed_to(7)
    assert recent.start == 5


def test_files_are_kept_until_there_are_too_many() -> None:
    """
    They may belong to a partition to which nothing is published any more.
    """
    spool = Spool(10 * FILES)
    idle, busy = RecentBatches(spool, lambda: 0, 0), RecentBatches(spool, lambda: 0, 0)
    filled(idle, 10, 10)
    idle.flushed_to(20)
    for number in range(FILES - 2):
        busy.add(bytes(10), 10 * number, 10 * number + 10)
    assert idle.start == 0
    busy.add(bytes(10), 140, 150)
    assert idle.start == 10
    assert busy.start == 0


def test_begins_again() -> None:
    recent = RecentBatches(Spool(PLENTY), lambda: 0, 0)
    filled(recent, 2, 3)
    recent.begin_at(9)
    assert (recent.start, recent.unflushed) == (9, 0)
    filled(recent, 1, start=9)
    assert read(recent, 9) == b"\0"


def test_a_file_that_cannot_be_read() -> None:
    spool = Spool(PLENTY)
    recent = RecentBatches(spool, lambda: 0, 0)
    filled(recent, 2, 3)
    os.ftruncate(spool._files[0].descriptor, 1)
    with pytest.raises(KafkaError, match="temporary file") as refused:
        recent.read(0, PLENTY, False, PLENTY)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_batch_that_is_in_files_in_part_stays() -> None:
    """
    Its other part must be published again.
    """
    for bytes_max in (0, PLENTY):
        recent = RecentBatches(Spool(bytes_max), lambda: 0, 0)
        filled(recent, 10, 10)
        recent.flushed_to(5)
        assert (recent.start, recent.unflushed) == (0, 20)
        assert [*recent.each_from(5)] == [bytes(10), b"\1" * 10]
        recent.flushed_to(10)
        assert recent.unflushed == 10


def test_what_must_stay_keeps_no_old_file() -> None:
    """
    It is in memory until it may be dropped.
    """
    spool = Spool(10 * FILES)
    waiting, busy = RecentBatches(spool, lambda: 0, 0), RecentBatches(spool, lambda: 0, 0)
    for number in range(40):
        waiting.add(b"w", number, number + 1)
        busy.add(bytes(10), 10 * number, 10 * number + 10)
        busy.flushed_to(10 * number + 10)
    files = {stored.file for stored in waiting._tail.batches if isinstance(stored, SpooledBytes)}
    assert len(files) <= FILES
    assert read(waiting, 0) == b"w" * 40
    waiting.flushed_to(40)
    assert 40 - FILES <= waiting.start < 40


def test_one_failed_write_does_not_keep_files(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(10 * FILES)
    recent = RecentBatches(spool, lambda: PLENTY, 0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _full)
        recent.add(bytes(10), 0, 10)
    for number in range(1, 100):
        recent.add(bytes(10), 10 * number, 10 * number + 10)
        recent.flushed_to(10 * number + 10)
    assert recent.start >= 1_000 - 10 * FILES


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_memory_is_counted_again_after_a_new_beginning() -> None:
    recent = RecentBatches(Spool(0), lambda: 10, 0)
    filled(recent, 10)
    recent.begin_at(10)
    recent.add(b"12345", 10, 15)
    recent.flushed_to(15)
    assert recent.start == 10


def test_batches_that_come_or_go_amid_a_look() -> None:
    """
    One iterator sees the batches as they are at each step, the other as they were at its beginning.
    """
    recent = RecentBatches(Spool(PLENTY), lambda: 0, 0)
    filled(recent, 2, 3)
    each, all_of_them = recent.each_from(0), recent.all_from(0)
    assert next(each) == b"\0\0"
    recent.add(b"\2", 5, 6)
    assert [*each] == [b"\1\1\1", b"\2"]
    recent.begin_at(6)
    assert [*all_of_them] == [b"\0\0", b"\1\1\1"]


@given(
    st.integers(0, 2).map(lambda factor: factor * 20 * FILES),
    st.integers(0, 30),
    st.lists(
        st.integers(1, 25)
        | st.tuples(st.just("safe"), st.integers(0, 99))
        | st.tuples(st.just("other"), st.integers(1, 60))
        | st.tuples(st.just("full"), st.integers(1, 25)),
        max_size=120,
    ),
)
def test_reads_give_what_was_added(spool_bytes: int, memory: int, steps: Sequence[int | tuple[str, int]]) -> None:
    """
    Batches that are in no file can always be read, though other partitions write to the same files, and writes fail;
    the memory for the rest is bounded, and no file is kept for long.
    """
    spool, whole, safe = Spool(spool_bytes), b"", 0
    recent, other = RecentBatches(spool, lambda: memory, 0), RecentBatches(spool, lambda: 0, 0)
    for step in steps:
        match step:
            case ("safe", percent):
                safe = max(safe, len(whole) * percent // 99)
                recent.flushed_to(safe)
            case ("other", size):
                other.add(bytes(size), 0, 1)
                other.begin_at(0)
            case int(size) | ("full", int(size)):
                data = os.urandom(size)
                with pytest.MonkeyPatch.context() as patched:
                    if step != size:
                        patched.setattr(os, "pwrite", _full)
                    recent.add(data, len(whole), len(whole) + size)
                whole += data
    assert recent.start <= safe
    if recent.start < len(whole):
        assert read(recent, recent.start) == whole[recent.start :]
    left = b"".join(recent.each_from(safe))
    assert left == b"".join(recent.all_from(safe))
    assert left.endswith(whole[safe:])
    assert len(left) - len(whole[safe:]) < 25
    assert recent.unflushed == len(left)
    assert len({stored.file for stored in recent._tail.batches if isinstance(stored, SpooledBytes)}) <= FILES
    recent.flushed_to(len(whole))
    if not spool_bytes:
        assert len(whole) - recent.start <= memory
