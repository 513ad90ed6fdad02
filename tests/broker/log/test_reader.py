"""
Reads for consumers, from the page cache or from the disk.
"""

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.partition import reader
from kgateway.broker.log.runtime import LoadedIndexes
from kgateway.broker.log.segments import batch_scan
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.segment_list import LogEnd
from tests.broker.behaviour import PLENTY, START_MS, appended, batch, result
from tests.broker.log.fixtures import SIZE, FilledLog, joined
from tests.broker.log.log_brokers import put
from tests.broker.log.log_world import LogWorld


@pytest.fixture
def filled(tmp_path: Path) -> FilledLog:
    return FilledLog(tmp_path / "t-0")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """
    What was checked: position and size.
    """
    checked, check = list[tuple[int, int]](), batch_scan.check_batches

    def counting(data: bytes, position: int, *rest: Any) -> None:
        checked.append((position, len(data)))
        check(data, position, *rest)

    monkeypatch.setattr("kgateway.broker.log.partition.reader.check_batches", counting)
    return checked


@pytest.mark.parametrize("cold", [False, True])
def test_reads_end_with_the_segment(cold: bool, filled: FilledLog) -> None:
    """
    Batches are given from the one with the offset on, as far as its segment goes, from memory as from the disk.
    """
    filled.disk.cold = cold
    assert [filled.read(offset) for offset in (0, 2, 3, 4, 9)] == [[0, 1, 2, 3], [2, 3], [3], [4, 5, 6, 7], [9]]
    assert [filled.read(5, size) for size in (SIZE - 1, SIZE, 2 * SIZE + 9)] == [[5], [5], [5, 6]]
    assert filled.read(5, SIZE - 1, at_least_one=False) == []
    assert filled.read(5, -1, at_least_one=True) == [5]


def test_cached_reads_need_no_thread(filled: FilledLog) -> None:
    filled.threads.slow = True
    if isinstance(filled.ask(9), Deferred):
        pytest.skip("this file system does not tell what it has in memory")
    assert filled.read(9) == [9]
    assert len(filled.threads) == 0


def test_reads_that_need_the_disk_wait_in_a_thread(filled: FilledLog) -> None:
    """
    Else a thread reads, on a file that stays open meanwhile, and afterwards does not.
    """
    filled.disk.cold = filled.threads.slow = True
    waiting = filled.ask(0)
    assert isinstance(waiting, Deferred)
    filled.runtime.files.close_all()
    filled.threads.work()
    assert joined(waiting) == b"".join(filled.data[:4])
    assert not filled.disk.opened


def test_indexes_are_read_in_a_thread(filled: FilledLog) -> None:
    """
    Where the indexes of a segment are not in memory, the first read fetches them; they stay for the next one.
    """
    assert not filled.segment_list.segments[0].indexes.is_loaded
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


def test_indexes_of_few_segments_are_in_memory(filled: FilledLog) -> None:
    """
    Those of the full segments that were read last, and always those of the one that is appended to.
    """
    filled.runtime.loaded = LoadedIndexes(limit=1)
    filled.disk.cold = True
    for offset in (0, 4, 8):
        filled.read(offset)
    assert [segment.indexes.is_loaded for segment in filled.segment_list.segments] == [False, True, True]


def test_reads_end_at_the_limit(filled: FilledLog) -> None:
    """
    No batch behind the limit is returned; the next read finds its position.
    """
    limit = LogEnd(9, 8, SIZE)
    assert joined(filled.reader.read(8, limit, PLENTY, True)) == filled.data[8]
    assert filled.read(9) == [9]


def test_unlimited_reads_return_a_part(filled: FilledLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A consumer that would take everything gets a part.
    """
    monkeypatch.setattr(reader, "_READ_MAX", 2 * SIZE)
    assert filled.read(0) == [0, 1]


def test_own_batches_are_not_checked(filled: FilledLog, checks: list[tuple[int, int]]) -> None:
    """
    Batches that this process wrote and the page cache has are returned unchecked.
    """
    if filled.ask(8) and filled.disk.count("read_at", file_name(8, ".log")):
        pytest.skip("this file system does not tell what it has in memory")
    checks.clear()
    filled.read(8)
    assert checks == []


def test_every_read_from_the_disk_is_checked(filled: FilledLog, checks: list[tuple[int, int]]) -> None:
    filled.disk.cold = True
    for _ in range(2):
        filled.read(8)
    assert checks == [(0, 2 * SIZE)] * 2


def test_batches_of_an_earlier_process_are_checked_once(filled: FilledLog, checks: list[tuple[int, int]]) -> None:
    """
    Each piece is checked when first read, and not again.
    """
    segment = filled.segment_list.segments[0]
    segment.trust_files(segment.size, segment.next_offset)
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
    monkeypatch.setattr(reader, "READ_BYTES", 2 * SIZE + 9)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("cold", [False, True])
def test_long_reads_are_split_into_pieces(cold: bool, filled: FilledLog) -> None:
    """
    Pieces end at batch borders and join to the same bytes; a batch larger than a piece is a piece of its own.
    """
    filled.disk.cold = cold
    pieces: list[bytes] = result(filled.ask(0))
    assert list(map(len, pieces)) == [2 * SIZE, 2 * SIZE]
    assert [filled.read(1, size) for size in (SIZE, 3 * SIZE - 1, 3 * SIZE)] == [[1], [1, 2], [1, 2, 3]]
    assert filled.read(5) == [5, 6, 7]
    large = batch(50)
    filled.data.append(put(filled.segment_list, large))
    assert filled.read(9) == [9, 10]
    assert filled.read(9, SIZE + len(large.data) - 1) == [9]
    assert filled.read(10) == [10]


def test_sequential_reads_need_no_search(filled: FilledLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The end position of a read is remembered, at the end of the log too.
    """
    filled.read(8, SIZE + 30)
    filled.read(9)
    filled.data.append(put(filled.segment_list, batch()))
    monkeypatch.setattr("kgateway.broker.log.segments.segment.locate_batch", None)
    assert filled.read(9) == [9, 10]
    assert filled.read(10) == [10]


def test_searches_by_time_let_go_of_indexes(tmp_path: Path) -> None:
    """
    What they had to read of full segments stays for as long as there is room, as with other readers.
    """
    world = LogWorld(tmp_path)
    partition = world.log_partition(segment_bytes=3 * SIZE, index_interval_bytes=1)
    partition._runtime.loaded = LoadedIndexes(limit=2)
    for number in range(18):
        appended(partition, batch(timestamp=START_MS + number))
    for number in range(0, 15, 3):
        found = result(partition.find_time(START_MS + number))
        assert found
        assert found.offset == number
    assert [segment.indexes.is_loaded for segment in partition.segment_list.segments] == [False] * 3 + [True] * 3
