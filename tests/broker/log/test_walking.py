"""
Walks over the bytes of a segment by the heads of batches.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.index import OFFSETS, Index
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.walking import (
    Damaged,
    NotCached,
    Piece,
    Scratch,
    cut_piece,
    is_unfinished,
    locate,
)
from tests.broker.behaviour import batch
from tests.broker.log.making import laid
from tests.broker.log.noted_disk import NotedDisk
from tests.broker.log.three import DATA, END, NO_BORDERS, PARTS, SECOND, STARTS, THIRD, Bytes, changed


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (10, 0), (11, 0), (12, SECOND), (13, THIRD), (15, THIRD), (16, END), (99, END)]
)
def test_batches_are_located(offset: int, position: int) -> None:
    """
    It is the batch that has the offset or the first one behind it, else the end.
    """
    assert locate(Bytes(DATA), 0, END, offset) == position
    assert locate(Bytes(DATA), THIRD, END, offset) == max(position, THIRD)


def test_batches_are_located_over_many_windows() -> None:
    """
    Batches that begin near the border of a window, or reach over several, are found by their heads alone.
    """
    parts = laid(*[batch(n % 7 + 1) for n in range(200)], batch(300), batch(1))
    data, position, offset = b"".join(parts), 0, 0
    source = Bytes(data)
    for part in parts:
        assert locate(source, 0, len(data), offset) == position
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
    A head that says too much or too little is damage, where it stands.
    """
    with pytest.raises(Damaged) as error:
        locate(Bytes(data), 0, len(data), 99)
    assert error.value.position == where


def test_pieces_end_at_borders() -> None:
    """
    As many whole batches are cut out as fit; where enough was seen of the next one, its offset is told.
    """
    for max_bytes in range(END + 2):
        data, next_offset = cut_piece(Bytes(DATA), NO_BORDERS, 0, END, max_bytes, at_least_one=False)
        borders = [border for border in (0, *STARTS[1:], END) if border <= max_bytes]
        assert data == DATA[: borders[-1]], max_bytes
        seen = borders[-1] < min(max_bytes, END)
        assert next_offset == ([10, 12, 13][len(borders) - 1] if seen else None), max_bytes


def test_a_piece_has_one_batch_at_least() -> None:
    """
    Where that is asked for, the first batch is given though it is too large, and no other.
    """
    assert cut_piece(Bytes(DATA), NO_BORDERS, SECOND, END, 0, at_least_one=True) == Piece(PARTS[1], None)
    both = cut_piece(Bytes(DATA), NO_BORDERS, SECOND, END, END - SECOND, at_least_one=True)
    assert both == Piece(PARTS[1] + PARTS[2], None)


def test_borders_are_looked_up() -> None:
    """
    The index tells where the last whole batches of a piece are: heads before them are not looked at.
    """
    borders = Index(OFFSETS)
    borders.append(2, SECOND)
    borders.append(5, THIRD)
    spoilt = changed(SECOND + 8)
    piece = cut_piece(Bytes(spoilt), borders, 0, END, THIRD + 30, at_least_one=False)
    assert piece == Piece(spoilt[:THIRD], 13)
    with pytest.raises(Damaged):
        cut_piece(Bytes(spoilt), NO_BORDERS, 0, END, THIRD + 30, at_least_one=False)


@pytest.mark.parametrize("at_least_one", [False, True])
def test_a_piece_with_a_broken_head(at_least_one: bool) -> None:
    """
    A length that cannot be is damage, where it stands.
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
    What is left of a write that was cut off is the beginning of the batch that comes next, and of no other.
    """
    data = Bytes(b"before" + head + PARTS[1][16:][: left - len(head)])
    assert is_unfinished(data, 6, 6 + left, 12) is expected


def test_reads_that_need_the_disk(tmp_path: Path) -> None:
    """
    What is in the page cache comes into the same memory again and again, be it larger too; else nothing comes.
    """
    path = tmp_path / "file"
    path.write_bytes(DATA)
    file = LocalDisk().open(path)
    read = Scratch(20).source(file)
    if file.read_into(memoryview(bytearray(1)), 0):  # not every file system tells
        first = read(0, 20)
        assert first == DATA[:20]
        assert read(SECOND, 20) == DATA[SECOND : SECOND + 20] == first
        assert read(0, END) == DATA
    with pytest.raises(NotCached):
        read(1, END)
    file.close()
    disk = NotedDisk()
    disk.cold = True
    with pytest.raises(NotCached):
        Scratch(20).source(disk.open(path))(0, 1)
