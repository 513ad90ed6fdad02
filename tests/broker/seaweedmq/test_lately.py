"""
What was published lately, against a list of it.
"""

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.lately import Lately
from kgateway.broker.spool import Spool
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
    lately.shrink()
    assert (lately.start, lately.unsafe(), read(lately, 2)) == (0, 6, b"\1\1\1\2")
    assert [*lately.from_offset(3)] == [b"\1\1\1", b"\2"]
    lately.safe_to(2)
    assert (lately.unsafe(), read(lately, 5)) == (4, b"\2")
    assert [*lately.from_offset(6)] == []


def test_memory_is_bounded() -> None:
    lately = Lately(Spool(0), lambda: 4, 0)
    filled(lately, 2, 3, 1)
    lately.safe_to(6)
    assert (lately.start, read(lately, 2)) == (2, b"\1\1\1\2")
    lately.add(b"\3", 6, 7)
    lately.shrink()
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
    assert (lately.start, lately.unsafe()) == (9, 0)
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


@given(
    st.integers(0, 2).map(lambda factor: factor * 20 * FILES),
    st.integers(0, 30),
    st.lists(st.integers(1, 25) | st.tuples(st.just("safe"), st.integers(0, 99)), max_size=120),
)
def test_reads_give_what_was_added(spool_bytes: int, memory: int, steps: Sequence[int | tuple[str, int]]) -> None:
    """
    From where it begins, which is never behind what is in no file; memory has no more than it may of the rest.
    """
    lately, batches, safe = Lately(Spool(spool_bytes), lambda: memory, 0), list[tuple[int, bytes]](), 0
    for step in steps:
        end = batches[-1][0] + len(batches[-1][1]) if batches else 0
        if isinstance(step, int):
            batches.append((end, os.urandom(step)))
            lately.add(batches[-1][1], end, end + step)
        else:
            borders = [0, *(base + len(data) for base, data in batches)]
            safe = max(safe, borders[step[1] % len(borders)])
            lately.safe_to(safe)
    whole = b"".join(data for _, data in batches)
    assert lately.start <= safe
    assert lately.unsafe() == len(whole) - safe
    if lately.start < len(whole):
        assert read(lately, lately.start) == whole[lately.start :]
    assert b"".join(lately.from_offset(safe)) == whole[safe:]
    lately.safe_to(len(whole))
    if not spool_bytes:
        assert len(whole) - lately.start <= memory
