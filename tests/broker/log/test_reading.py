"""
Reading for consumers, with the disk at hand or not, and of what is damaged.
"""

from errno import EIO
from functools import partial
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.log import reading, walking
from kgateway.broker.log.partition_log import End, Limits
from kgateway.broker.log.parts import LoadedIndexes
from kgateway.broker.log.reading import Reader
from kgateway.broker.log.recovery import Trust
from kgateway.broker.log.segment import file_name
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import batches
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import PLENTY, batch, refusal, result
from tests.broker.log.making import Threads, log_parts, put, recovered
from tests.broker.log.noted_disk import NotedDisk

SIZE = len(batch().data)
LENGTH_AT = 8
IN_RECORDS = 70
CRC = "the CRC of the batch is not that of its bytes"


class Filled:
    """
    A log of ten batches of a record, in segments of four, and who reads it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.disk, self.threads = folder, NotedDisk(), Threads()
        self.open()
        limits = Limits(4 * SIZE, LONG_MAX, 0)
        self.data = [put(self.log, batch(), limits=limits) for _ in range(10)]
        self.log.save_indexes()

    def open(self) -> None:
        """
        As an earlier process has left it.
        """
        self.parts = log_parts(self.disk, self.threads)
        found = recovered(self.parts.files, self.folder, Trust(0, 0, process_only=True))
        self.log, self.faults = found.log, found.faults
        self.reader = Reader(self.log, self.parts)

    def ask(
        self, offset: int, max_bytes: int = PLENTY, at_least_one: bool = True
    ) -> list[bytes] | Deferred[list[bytes]]:
        return self.reader.read(offset, self.log.end, max_bytes, at_least_one)

    def read(self, offset: int, max_bytes: int = PLENTY, at_least_one: bool = True) -> list[int]:
        """
        The offsets of what is given; that it is what was written is checked.
        """
        data = joined(self.ask(offset, max_bytes, at_least_one))
        offsets = [found.header.base_offset for found in batches(data)]
        assert data == b"".join(self.data[offset] for offset in offsets)
        return offsets

    def damage(self, offset: int, at: int) -> None:
        """
        Change a byte of the batch with this offset.
        """
        path = self.folder / file_name(offset // 4 * 4, ".log")
        data = bytearray(path.read_bytes())
        data[offset % 4 * SIZE + at] ^= 0xFF
        path.write_bytes(data)


def joined(pieces: list[bytes] | Deferred[list[bytes]]) -> bytes:
    found: list[bytes] = result(pieces)
    return b"".join(found)


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    return Filled(tmp_path / "t-0")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """
    What was checked: position and size.
    """
    checked, check = list[tuple[int, int]](), walking.check

    def counting(data: bytes, position: int, *rest: int) -> None:
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
    assert not filled.log.segments[0].is_loaded
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
    Those of the segments that were read last.
    """
    filled.parts.loaded = LoadedIndexes(limit=2)
    filled.disk.cold = True
    for offset in (0, 4, 0, 8):
        filled.read(offset)
    assert [segment.is_loaded for segment in filled.log.segments] == [True, False, True]


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
    assert segment.offsets
    for offset in (0, 0, 1, 3, 0, 2, 2, 0):
        filled.read(offset, SIZE)
    assert checks == [(0, SIZE), (SIZE, SIZE), (3 * SIZE, SIZE), (2 * SIZE, SIZE)]
    filled.read(3, SIZE)
    filled.read(0)
    assert checks[4:] == [(3 * SIZE, SIZE)]


@pytest.mark.parametrize("cold", [False, True])
def test_damaged_batches_are_not_given(cold: bool, filled: Filled) -> None:
    """
    Good batches before a damaged one are given, and those behind it; who asks for it is told.
    """
    filled.damage(6, IN_RECORDS)
    filled.open()
    filled.disk.cold = cold
    assert [filled.read(offset) for offset in (4, 5, 7, 8)] == [[4, 5], [5], [7], [8, 9]]
    for _ in range(2):
        error = refusal(lambda: filled.ask(6))
        assert error.code is ErrorCode.CORRUPT_MESSAGE
        name = f"{filled.folder.name}/{file_name(4, '.log')}"
        assert error.message == f"{name} cannot be read for offset 6: at byte {2 * SIZE}: {CRC}"
    assert filled.read(4) == [4, 5]


def test_two_damages_in_what_is_read(filled: Filled) -> None:
    """
    The first counts, be the other one found before it.
    """
    filled.disk.cold = True
    filled.damage(1, IN_RECORDS)
    filled.damage(2, LENGTH_AT)
    segment = filled.log.segments[0]
    segment.offsets.cut(0, 0)
    assert filled.read(0, 4 * SIZE - 1) == [0]


def test_damage_is_told_once(filled: Filled) -> None:
    """
    An operator hears of each damage, and not of each consumer that meets it.
    """
    for offset in (5, 9):
        filled.damage(offset, IN_RECORDS)
    filled.disk.cold = True
    with capturedLogs() as logged:
        for offset in (5, 5, 9, 5):
            refusal(partial(filled.ask, offset))
    told = [str(event["reason"]) for event in logged]
    assert [text.partition(" cannot")[0] for text in told] == [
        f"{filled.folder.name}/{file_name(base, '.log')}" for base in (4, 8)
    ]


@pytest.mark.parametrize("operation", ["open .log", "read_at .log"])
def test_a_disk_that_cannot_be_read(operation: str, filled: Filled) -> None:
    """
    The client is told KAFKA_STORAGE_ERROR, and may succeed another time.
    """
    filled.disk.cold = True
    filled.parts.files.close_all()
    filled.disk.failing[operation] = EIO
    error = refusal(lambda: filled.ask(4))
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert error.message
    assert "Input/output error" in error.message
    filled.disk.failing.clear()
    assert filled.read(4) == [4, 5, 6, 7]
    filled.parts.files.close_all()
    assert not filled.disk.opened


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


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("offset", [2, 3])
def test_damage_in_a_later_piece(offset: int, filled: Filled) -> None:
    """
    The pieces before it are given.
    """
    filled.disk.cold = True
    filled.damage(offset, IN_RECORDS)
    assert filled.read(0) == list(range(offset))
    assert refusal(lambda: filled.ask(offset)).code is ErrorCode.CORRUPT_MESSAGE


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
