"""
Walks over the batch headers of a segment.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.segments.batch_scan import (
    BatchRun,
    Damaged,
    NotCached,
    Scratch,
    cut_piece,
    is_unfinished,
    locate_batch,
)
from kgateway.broker.log.segments.index import OFFSETS, Index
from tests.broker.behaviour import batch
from tests.broker.log.batches import DATA, END, NO_BORDERS, PARTS, SECOND, STARTS, THIRD, Bytes, changed
from tests.broker.log.log_brokers import laid
from tests.broker.log.recording_disk import RecordingDisk


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (10, 0), (11, 0), (12, SECOND), (13, THIRD), (15, THIRD), (16, END), (99, END)]
)
def test_batches_are_located(offset: int, position: int) -> None:
    """
    The batch that contains the offset is found, or the first one behind it, else the end.
    """
    assert locate_batch(Bytes(DATA), 0, END, offset) == position
    assert locate_batch(Bytes(DATA), THIRD, END, offset) == max(position, THIRD)


def test_batches_are_located_over_many_windows() -> None:
    """
    Batches near the border of a window, or over several windows, are found by their headers alone.
    """
    parts = laid(*[batch(n % 7 + 1) for n in range(200)], batch(300), batch(1))
    data, position, offset = b"".join(parts), 0, 0
    source = Bytes(data)
    for part in parts:
        assert locate_batch(source, 0, len(data), offset) == position
        position += len(part)
        offset += int.from_bytes(part[23:27], "big") + 1
    assert max(size for _, size in source.asked) == 4096


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (DATA + b"\0" * 5, END),
        (changed(SECOND + 8), SECOND),
        (DATA[:-1], THIRD),
        (changed(SECOND + 11, by=DATA[SECOND + 11] ^ 48), SECOND),
    ],
    ids=["too few bytes for a head", "beyond the end", "a byte beyond", "too short"],
)
def test_what_no_batch_can_be_is_no_place(data: bytes, where: int) -> None:
    """
    A header with an impossible length is damage at its position.
    """
    with pytest.raises(Damaged) as error:
        locate_batch(Bytes(data), 0, len(data), 99)
    assert error.value.position == where


def test_pieces_end_at_borders() -> None:
    """
    As many whole batches are cut out as fit; if enough of the next one was read, its offset is returned.
    """
    for max_bytes in range(END + 2):
        data, next_offset = cut_piece(Bytes(DATA), NO_BORDERS, 0, END, max_bytes, at_least_one=False)
        borders = [border for border in (0, *STARTS[1:], END) if border <= max_bytes]
        assert data == DATA[: borders[-1]], max_bytes
        seen = borders[-1] < min(max_bytes, END)
        assert next_offset == ([10, 12, 13][len(borders) - 1] if seen else None), max_bytes


def test_a_piece_has_one_batch_at_least() -> None:
    """
    If the caller wants it, a first batch that is too large is returned alone.
    """
    assert cut_piece(Bytes(DATA), NO_BORDERS, SECOND, END, 0, at_least_one=True) == BatchRun(PARTS[1], None)
    both = cut_piece(Bytes(DATA), NO_BORDERS, SECOND, END, END - SECOND, at_least_one=True)
    assert both == BatchRun(PARTS[1] + PARTS[2], None)


def test_borders_are_looked_up() -> None:
    """
    The index has the position of a piece's last whole batches: headers before them are not read.
    """
    borders = Index(OFFSETS)
    borders.append(2, SECOND)
    borders.append(5, THIRD)
    spoilt = changed(SECOND + 8)
    piece = cut_piece(Bytes(spoilt), borders, 0, END, THIRD + 30, at_least_one=False)
    assert piece == BatchRun(spoilt[:THIRD], 13)
    with pytest.raises(Damaged):
        cut_piece(Bytes(spoilt), NO_BORDERS, 0, END, THIRD + 30, at_least_one=False)


@pytest.mark.parametrize("at_least_one", [False, True])
def test_a_piece_with_a_broken_head(at_least_one: bool) -> None:
    """
    An impossible length is damage at its position.
    """
    with pytest.raises(Damaged) as error:
        cut_piece(Bytes(changed(SECOND + 8)), NO_BORDERS, SECOND, END, 40 if at_least_one else 0, at_least_one=True)
    assert error.value.position == SECOND


@pytest.mark.parametrize(
    ("head", "left", "expected"),
    [
        (PARTS[1][:11], 11, True),
        (PARTS[1][:12], 12, True),
        (PARTS[1][:16], len(PARTS[1]) - 1, True),
        (PARTS[1][:16], len(PARTS[1]), False),
        (PARTS[2][:16], 20, False),
        (b"\0" * 16, 20, False),
    ],
)
def test_unfinished_batches(head: bytes, left: int, expected: bool) -> None:
    """
    The rest of an interrupted write is the beginning of the next batch, and of no other.
    """
    data = Bytes(b"before" + head + PARTS[1][16:][: left - len(head)])
    assert is_unfinished(data, 6, 6 + left, 12) is expected


def test_reads_that_need_the_disk(tmp_path: Path) -> None:
    """
    Bytes in the page cache are read into the same buffer again, even a larger read; others are not returned.
    """
    path = tmp_path / "file"
    path.write_bytes(DATA)
    file = LocalDisk().open(path)
    read = Scratch(20).source(file)
    if file.read_into(memoryview(bytearray(1)), 0):  # not every file system reports it
        first = read(0, 20)
        assert first == DATA[:20]
        assert read(SECOND, 20) == DATA[SECOND : SECOND + 20] == first
        assert read(0, END) == DATA
    with pytest.raises(NotCached):
        read(1, END)
    file.close()
    disk = RecordingDisk()
    disk.cold = True
    with pytest.raises(NotCached):
        Scratch(20).source(disk.open(path))(0, 1)
