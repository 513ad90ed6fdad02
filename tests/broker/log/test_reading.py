"""
Reading for consumers, with the disk at hand or not.
"""

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log import reading, walking
from kgateway.broker.log.partition_log import End
from kgateway.broker.log.parts import LoadedIndexes
from kgateway.broker.log.segment import file_name
from tests.broker.behaviour import PLENTY, START_MS, appended, batch, result
from tests.broker.log.filled import SIZE, Filled, joined
from tests.broker.log.log_world import LogWorld
from tests.broker.log.making import put


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    return Filled(tmp_path / "t-0")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """
    What was checked: position and size.
    """
    checked, check = list[tuple[int, int]](), walking.check

    def counting(data: bytes, position: int, *rest: Any) -> None:
        checked.append((position, len(data)))
        check(data, position, *rest)

    monkeypatch.setattr("kgateway.broker.log.reading.check", counting)
    return checked


@pytest.mark.parametrize("cold", [False, True])
def test_reads_end_with_the_segment(cold: bool, filled: Filled) -> None:
    """
    Batches are given from the one with the offset on, as far as its segment goes, from memory as from the disk.
    """
    filled.disk.cold = cold
    assert [filled.read(offset) for offset in (0, 2, 3, 4, 9)] == [[0, 1, 2, 3], [2, 3], [3], [4, 5, 6, 7], [9]]
    assert [filled.read(5, size) for size in (SIZE - 1, SIZE, 2 * SIZE + 9)] == [[5], [5], [5, 6]]
    assert filled.read(5, SIZE - 1, at_least_one=False) == []
    assert filled.read(5, -1, at_least_one=True) == [5]


def test_reads_that_need_no_disk_are_done_at_once(filled: Filled) -> None:
    """
    What the page cache has is given without a thread.
    """
    filled.threads.slow = True
    if isinstance(filled.ask(9), Deferred):
        pytest.skip("this file system does not tell what it has in memory")
    assert filled.read(9) == [9]
    assert len(filled.threads) == 0


def test_reads_that_need_the_disk_wait_in_a_thread(filled: Filled) -> None:
    """
    Else a thread reads, on a file that stays open meanwhile, and afterwards does not.
    """
    filled.disk.cold = filled.threads.slow = True
    waiting = filled.ask(0)
    assert isinstance(waiting, Deferred)
    filled.parts.files.close_all()
    filled.threads.work()
    assert joined(waiting) == b"".join(filled.data[:4])
    assert not filled.disk.opened


def test_indexes_are_read_in_a_thread(filled: Filled) -> None:
    """
    Where the indexes of a segment are not in memory, the first read fetches them; they stay for the next one.
    """
    assert not filled.log.segments[0].indexes.is_loaded
    filled.threads.slow = True
    waiting = filled.ask(0)
    assert isinstance(waiting, Deferred)
    assert filled.disk.count("read", ".index") == 0
    filled.threads.work()
    assert joined(waiting) == b"".join(filled.data[:4])
    filled.threads.slow = False
    filled.disk.done.clear()
    filled.read(0)
    if filled.disk.count("read_at"):
        pytest.skip("this file system does not tell what it has in memory")
    assert filled.disk.count("read", ".index") == 0


def test_indexes_of_few_segments_are_in_memory(filled: Filled) -> None:
    """
    Those of the full segments that were read last, and always those of the one that is appended to.
    """
    filled.parts.loaded = LoadedIndexes(limit=1)
    filled.disk.cold = True
    for offset in (0, 4, 8):
        filled.read(offset)
    assert [segment.indexes.is_loaded for segment in filled.log.segments] == [False, True, True]


def test_a_limit_ends_what_is_read(filled: Filled) -> None:
    """
    Nothing behind the limit is given, though it is there; who reads on from it finds its place.
    """
    limit = End(9, 8, SIZE)
    assert joined(filled.reader.read(8, limit, PLENTY, True)) == filled.data[8]
    assert filled.read(9) == [9]


def test_a_consumer_is_not_given_all_at_once(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One who would take everything gets a part.
    """
    monkeypatch.setattr(reading, "_READ_MAX", 2 * SIZE)
    assert filled.read(0) == [0, 1]


def test_own_batches_are_not_checked(filled: Filled, checks: list[tuple[int, int]]) -> None:
    """
    What this process has written, and the page cache has, is given as it is.
    """
    if filled.ask(8) and filled.disk.count("read_at", file_name(8, ".log")):
        pytest.skip("this file system does not tell what it has in memory")
    checks.clear()
    filled.read(8)
    assert checks == []


def test_what_is_from_the_disk_is_checked(filled: Filled, checks: list[tuple[int, int]]) -> None:
    """
    Each time it comes from there.
    """
    filled.disk.cold = True
    for _ in range(2):
        filled.read(8)
    assert checks == [(0, 2 * SIZE)] * 2


def test_what_another_process_has_written_is_checked_once(filled: Filled, checks: list[tuple[int, int]]) -> None:
    """
    Piece by piece as it is first read, and not again.
    """
    segment = filled.log.segments[0]
    segment.take_over(segment.size, segment.next_offset)
    assert segment.indexes.offsets
    for offset in (0, 0, 1, 3, 0, 2, 2, 0):
        filled.read(offset, SIZE)
    assert checks == [(0, SIZE), (SIZE, SIZE), (3 * SIZE, SIZE), (2 * SIZE, SIZE)]
    filled.read(3, SIZE)
    filled.read(0)
    assert checks[4:] == [(3 * SIZE, SIZE)]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Few bytes are read at once.
    """
    monkeypatch.setattr(reading, "PIECE_BYTES", 2 * SIZE + 9)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("cold", [False, True])
def test_much_is_read_in_pieces(cold: bool, filled: Filled) -> None:
    """
    Pieces end where batches do, and together are what one would be; a batch larger than a piece is one by itself.
    """
    filled.disk.cold = cold
    pieces: list[bytes] = result(filled.ask(0))
    assert list(map(len, pieces)) == [2 * SIZE, 2 * SIZE]
    assert [filled.read(1, size) for size in (SIZE, 3 * SIZE - 1, 3 * SIZE)] == [[1], [1, 2], [1, 2, 3]]
    assert filled.read(5) == [5, 6, 7]
    large = batch(50)
    filled.data.append(put(filled.log, large))
    assert filled.read(9) == [9, 10]
    assert filled.read(9, SIZE + len(large.data) - 1) == [9]
    assert filled.read(10) == [10]


def test_a_reader_that_goes_on_is_not_looked_for(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where a read ended is remembered, at the end of the log too: the next one needs no search.
    """
    filled.read(8, SIZE + 30)
    filled.read(9)
    filled.data.append(put(filled.log, batch()))
    monkeypatch.setattr("kgateway.broker.log.segment.locate", None)
    assert filled.read(9) == [9, 10]
    assert filled.read(10) == [10]


def test_searches_by_time_let_go_of_indexes(tmp_path: Path) -> None:
    """
    What they had to read of full segments stays for as long as there is room, as with other readers.
    """
    world = LogWorld(tmp_path)
    partition = world.log_partition(segment_bytes=3 * SIZE, index_interval_bytes=1)
    partition._parts.loaded = LoadedIndexes(limit=2)
    for number in range(18):
        appended(partition, batch(timestamp=START_MS + number))
    for number in range(0, 15, 3):
        found = result(partition.find_time(START_MS + number))
        assert found
        assert found.offset == number
    assert [segment.indexes.is_loaded for segment in partition.log.segments] == [False] * 3 + [True] * 3
