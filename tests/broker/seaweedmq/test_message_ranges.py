"""
Ranges of log files are read from bytes in memory.
"""

from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred

from kgateway.broker.seaweedmq.files.message_ranges import MessageRange, read_range, read_ranges
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.wire.errors import Malformed
from tests.broker.seaweedmq.log_messages import NOW_NS, framed

T = TypeVar("T")

_SIZES = st.lists(st.sampled_from([0, 1, 5, 60, 127, 128, 300, 2000]) | st.integers(0, 400), max_size=12)


def messages(sizes: list[int]) -> list[LoggedMessage]:
    """
    Messages with values of these sizes, each with its position in the file.
    """
    found = [LoggedMessage(n, NOW_NS + n, b"k" * (n % 3), bytes([n]) * size) for n, size in enumerate(sizes)]
    return [entry._replace(end=len(framed(found[: n + 1]))) for n, entry in enumerate(found)]


class File:
    """
    Bytes in memory, and which of them were read. Reads may wait until a test lets them end.
    """

    def __init__(self, data: bytes, waits: bool = False) -> None:
        self.data = data
        self.read_at: list[tuple[int, int]] = []
        self.coming: list[Deferred[None]] = []
        self._waits = waits

    async def read(self, start: int, stop: int) -> bytes:
        self.read_at.append((start, stop))
        if self._waits:
            self.coming.append(Deferred())
            await self.coming[-1]
        return self.data[start:stop]


def now(coroutine: Coroutine[Any, Any, T]) -> T:
    """
    The result of a coroutine that need not wait.
    """
    found: list[T] = []
    failed: list[BaseException] = []
    Deferred.fromCoroutine(coroutine).addCallbacks(found.append, lambda failure: failed.append(failure.value))
    if failed:
        raise failed[0]
    return found[0]


async def collected(ranges: AsyncIterator[MessageRange]) -> list[MessageRange]:
    return [found async for found in ranges]


@given(_SIZES, st.integers(1, 900))
def test_ranges_of_any_size_have_the_same_messages(sizes: list[int], range_bytes: int) -> None:
    """
    Each message is read once, in order, with its position; no range is larger than allowed, except for a large message.
    """
    wanted = messages(sizes)
    file = File(framed(wanted))
    ranges = now(collected(read_ranges(file.read, 0, len(file.data), range_bytes)))
    assert [entry for found in ranges for entry in found.messages()] == wanted
    assert [found.start for found in ranges] == [0, *(found.stop for found in ranges)][: len(ranges)]
    for found in ranges:
        assert found.size <= range_bytes or len(list(found.messages())) == 1
        there = list(found.messages())
        assert found.last(1) == (there[-1:], len(there))


@given(_SIZES, st.integers(1, 900), st.data())
def test_reading_goes_on_where_a_file_has_grown(sizes: list[int], range_bytes: int, data: st.DataObject) -> None:
    """
    The messages read before and after the file has grown are all of its messages.
    """
    wanted = messages(sizes)
    file = File(framed(wanted))
    size = data.draw(st.sampled_from([0, *(entry.end for entry in wanted)]))
    before = now(collected(read_ranges(file.read, 0, size, range_bytes)))
    seen = before[-1].stop if before else 0
    assert seen == size
    later = now(collected(read_ranges(file.read, seen, len(file.data), range_bytes)))
    assert [entry for found in (*before, *later) for entry in found.messages()] == wanted


def test_a_message_larger_than_a_range_is_a_range() -> None:
    """
    No byte of it is fetched twice, and none after it.
    """
    wanted = messages([5, 5000, 5])
    file = File(framed(wanted))
    found = now(read_range(file.read, wanted[0].end, len(file.data), 100))
    assert list(found.messages()) == wanted[1:2]
    assert file.read_at == [(wanted[0].end, wanted[0].end + 100), (wanted[0].end + 100, wanted[1].end)]


def test_only_what_is_asked_for_is_fetched() -> None:
    """
    The first range of a file fetches no more bytes than a range has.
    """
    file = File(framed(messages([30] * 100)))
    now(read_range(file.read, 0, len(file.data), 500))
    assert file.read_at == [(0, 500)]


def test_the_next_range_is_on_its_way_while_one_is_looked_at() -> None:
    """
    One range is prefetched, and none after the last.
    """
    wanted = messages([30] * 20)
    file = File(framed(wanted), waits=True)
    seen: list[int] = []

    async def look() -> None:
        async for found in read_ranges(file.read, 0, len(file.data), 500):
            seen.append(found.start)
            assert len(file.coming) == min(len(seen) + 1, 3)
            await Deferred[None]() if found.start else None

    Deferred.fromCoroutine(look()).addErrback(lambda failure: failure.trap(CancelledError))
    assert len(file.coming) == 1
    file.coming[0].callback(None)
    assert seen == [0]
    file.coming[1].callback(None)
    assert len(seen) == 2


def test_who_looks_no_further_leaves_nothing_on_its_way() -> None:
    """
    The prefetch is cancelled.
    """
    file = File(framed(messages([30] * 20)), waits=True)

    async def look() -> None:
        ranges = read_ranges(file.read, 0, len(file.data), 500)
        async for _ in ranges:
            break
        await ranges.aclose()

    Deferred.fromCoroutine(look())
    file.coming[0].callback(None)
    assert len(file.coming) == 2
    assert file.coming[1].called  # cancelled


def test_what_is_no_whole_message_is_told_with_its_place() -> None:
    """
    It is at the end of the file, or has no length.
    """
    wanted = messages([30, 40])
    data = framed(wanted)
    for size in range(wanted[0].end + 1, len(data)):
        file = File(data[:size])
        with pytest.raises(Malformed) as failure:
            now(collected(read_ranges(file.read, 0, size, 50)))
        assert failure.value.position == wanted[0].end
    with pytest.raises(Malformed, match="a message cannot have 0 bytes"):
        now(read_range(File(data + bytes(9)).read, len(data), len(data) + 9, 50))
