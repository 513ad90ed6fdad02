"""
What was published lately, against a list of it.
"""

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.lately import Lately
from kgateway.broker.spool import Piece, Spool
from kgateway.wire.errors import ErrorCode, KafkaError

PLENTY = 1 << 20
FILES = 16


def filled(lately: Lately, *sizes: int, start: int = 0) -> None:
    """
    Batches that have as many bytes as offsets, each of a byte of its own.
    """
    for number, size in enumerate(sizes):
        lately.add(bytes([number]) * size, start, start + size)
        start += size


def read(lately: Lately, offset: int) -> bytes:
    return b"".join(lately.read(offset, PLENTY, False, PLENTY))


@pytest.mark.parametrize("bytes_max", [0, PLENTY])
def test_what_is_in_no_file_stays(bytes_max: int) -> None:
    """
    Whatever the memory may be.
    """
    lately = Lately(Spool(bytes_max), lambda: 0, 0)
    filled(lately, 2, 3, 1)
    lately.let_go()
    assert (lately.start, lately.unsafe, read(lately, 2)) == (0, 6, b"\1\1\1\2")
    assert [*lately.each_from(3)] == [b"\1\1\1", b"\2"]
    lately.safe_to(2)
    assert (lately.unsafe, read(lately, 5)) == (4, b"\2")
    assert [*lately.all_from(6)] == []


def test_memory_is_bounded() -> None:
    lately = Lately(Spool(0), lambda: 4, 0)
    filled(lately, 2, 3, 1)
    lately.safe_to(6)
    assert (lately.start, read(lately, 2)) == (2, b"\1\1\1\2")
    lately.add(b"\3", 6, 7)
    lately.let_go()
    assert lately.start == 5, "the new one counts, though it must stay"
    lately.safe_to(7)
    assert lately.start == 5


def test_files_are_kept_until_there_are_too_many() -> None:
    """
    Also by a partition to which nothing is published any more.
    """
    spool = Spool(10 * FILES)
    idle, busy = Lately(spool, lambda: 0, 0), Lately(spool, lambda: 0, 0)
    filled(idle, 10, 10)
    idle.safe_to(20)
    for number in range(FILES - 2):
        busy.add(bytes(10), 10 * number, 10 * number + 10)
    assert idle.start == 0
    busy.add(bytes(10), 140, 150)
    assert idle.start == 10
    assert busy.start == 0


def test_begins_anew() -> None:
    lately = Lately(Spool(PLENTY), lambda: 0, 0)
    filled(lately, 2, 3)
    lately.begin_at(9)
    assert (lately.start, lately.unsafe) == (9, 0)
    filled(lately, 1, start=9)
    assert read(lately, 9) == b"\0"


def test_a_file_that_cannot_be_read() -> None:
    spool = Spool(PLENTY)
    lately = Lately(spool, lambda: 0, 0)
    filled(lately, 2, 3)
    os.ftruncate(spool._files[0].descriptor, 1)
    with pytest.raises(KafkaError, match="temporary file") as refused:
        lately.read(0, PLENTY, False, PLENTY)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_batch_that_is_in_files_in_part_stays() -> None:
    """
    Its other part must be published again.
    """
    for bytes_max in (0, PLENTY):
        lately = Lately(Spool(bytes_max), lambda: 0, 0)
        filled(lately, 10, 10)
        lately.safe_to(5)
        assert (lately.start, lately.unsafe) == (0, 20)
        assert [*lately.each_from(5)] == [bytes(10), b"\1" * 10]
        lately.safe_to(10)
        assert lately.unsafe == 10


def test_what_must_stay_keeps_no_old_file() -> None:
    """
    It is in memory then, until it may go.
    """
    spool = Spool(10 * FILES)
    waiting, busy = Lately(spool, lambda: 0, 0), Lately(spool, lambda: 0, 0)
    for number in range(40):
        waiting.add(b"w", number, number + 1)
        busy.add(bytes(10), 10 * number, 10 * number + 10)
        busy.safe_to(10 * number + 10)
    files = {stored.file for stored in waiting._tail.batches if isinstance(stored, Piece)}
    assert len(files) <= FILES
    assert read(waiting, 0) == b"w" * 40
    waiting.safe_to(40)
    assert 40 - FILES <= waiting.start < 40


def test_one_failed_write_does_not_keep_files(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(10 * FILES)
    lately = Lately(spool, lambda: PLENTY, 0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", _full)
        lately.add(bytes(10), 0, 10)
    for number in range(1, 100):
        lately.add(bytes(10), 10 * number, 10 * number + 10)
        lately.safe_to(10 * number + 10)
    assert lately.start >= 1_000 - 10 * FILES


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_memory_is_counted_anew() -> None:
    lately = Lately(Spool(0), lambda: 10, 0)
    filled(lately, 10)
    lately.begin_at(10)
    lately.add(b"12345", 10, 15)
    lately.safe_to(15)
    assert lately.start == 10


def test_batches_that_come_or_go_amid_a_look() -> None:
    """
    One look takes them as they are when it is their turn, the other as they were.
    """
    lately = Lately(Spool(PLENTY), lambda: 0, 0)
    filled(lately, 2, 3)
    each, all_of_them = lately.each_from(0), lately.all_from(0)
    assert next(each) == b"\0\0"
    lately.add(b"\2", 5, 6)
    assert [*each] == [b"\1\1\1", b"\2"]
    lately.begin_at(6)
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
    From where it begins, which is never behind what is in no file, though others write to the same files, and writes
    fail; memory has no more than it may of the rest, and no file is kept for long.
    """
    spool, whole, safe = Spool(spool_bytes), b"", 0
    lately, other = Lately(spool, lambda: memory, 0), Lately(spool, lambda: 0, 0)
    for step in steps:
        match step:
            case ("safe", percent):
                safe = max(safe, len(whole) * percent // 99)
                lately.safe_to(safe)
            case ("other", size):
                other.add(bytes(size), 0, 1)
                other.begin_at(0)
            case int(size) | ("full", int(size)):
                data = os.urandom(size)
                with pytest.MonkeyPatch.context() as patched:
                    if step != size:
                        patched.setattr(os, "pwrite", _full)
                    lately.add(data, len(whole), len(whole) + size)
                whole += data
    assert lately.start <= safe
    if lately.start < len(whole):
        assert read(lately, lately.start) == whole[lately.start :]
    left = b"".join(lately.each_from(safe))
    assert left == b"".join(lately.all_from(safe))
    assert left.endswith(whole[safe:])
    assert len(left) - len(whole[safe:]) < 25
    assert lately.unsafe == len(left)
    assert len({stored.file for stored in lately._tail.batches if isinstance(stored, Piece)}) <= FILES
    lately.safe_to(len(whole))
    if not spool_bytes:
        assert len(whole) - lately.start <= memory
