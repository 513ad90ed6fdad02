"""
Walks over the bytes of a segment, whole and damaged.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.disk import LocalDisk
from kgateway.broker.log.index import OFFSETS, Index
from kgateway.broker.log.walking import (
    Damage,
    Damaged,
    NotCached,
    Piece,
    Scratch,
    check,
    cut_piece,
    is_unfinished,
    locate,
    scan,
)
from kgateway.records.batch import HEADER_SIZE, Batch
from tests.broker.behaviour import batch
from tests.broker.log.making import laid
from tests.broker.log.noted_disk import NotedDisk
from tests.records.sealed import sealed

FIRST_OFFSET = 10
PARTS = laid(batch(2), batch(1), batch(3), first=FIRST_OFFSET)  # from offset 10, 12 and 13
STARTS = [0, len(PARTS[0]), len(PARTS[0]) + len(PARTS[1])]
DATA = b"".join(PARTS)
END = len(DATA)
_, SECOND, THIRD = STARTS
NO_BORDERS = Index(OFFSETS)


class Bytes:
    """
    A source that notes how much it was asked for.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.asked: list[tuple[int, int]] = []

    def __call__(self, position: int, size: int) -> bytes:
        self.asked.append((position, size))
        return self._data[position : position + size]


def found(data: bytes, end: int | None = None) -> list[Batch | Damage]:
    """
    What a scan finds.
    """
    return list(scan(Bytes(data), 0, len(data) if end is None else end, FIRST_OFFSET))


def good(data: bytes) -> list[int]:
    """
    The offsets of the batches before the first damage.
    """
    offsets = list[int]()
    for each in found(data):
        if isinstance(each, Damage):
            break
        offsets.append(each.header.base_offset)
    return offsets


def changed(at: int, data: bytes = DATA, by: int = 0xFF) -> bytes:
    return data[:at] + bytes([data[at] ^ by]) + data[at + 1 :]


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
        seen = max_bytes - borders[-1] >= 27 and borders[-1] < END
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


def test_whole_segments_are_scanned() -> None:
    """
    Each batch is found, once, in order.
    """
    assert [batch.data for batch in found(DATA) if isinstance(batch, Batch)] == PARTS


@pytest.mark.parametrize("piece", [70, 100, 250, 1 << 20])
def test_scans_go_piece_by_piece(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However much is read at once, and however large a batch is beside that, the same is found.
    """
    monkeypatch.setattr("kgateway.broker.log.walking.PIECE", piece)
    parts = laid(*[batch(n % 5 + 1) for n in range(30)], first=FIRST_OFFSET)
    assert [batch.data for batch in found(b"".join(parts)) if isinstance(batch, Batch)] == parts


def test_a_changed_byte_is_found() -> None:
    """
    Wherever a byte is changed, the scan finds damage in that batch or right behind it, save where nothing tells: in
    the leader epoch, and in a base offset that becomes larger with no batch behind it.
    """
    silent = set[int]()
    for at in range(END):
        for by in (1, 0x80, 0xFF):
            number = sum(at >= start for start in STARTS) - 1
            if all(isinstance(each, Batch) for each in found(changed(at, by=by))):
                silent.add(at)
            else:
                assert good(changed(at, by=by))[:number] == [10, 12, 13][:number], at
    assert {at for at in silent if at < THIRD} == {start + n for start in STARTS[:2] for n in range(12, 16)}
    assert {at - THIRD for at in silent if at >= THIRD} == {*range(8), *range(12, 16)}


def test_a_cut_is_found() -> None:
    """
    Wherever a segment is cut, the batches before the cut are whole, and what is left of one is torn.
    """
    for size in range(END + 1):
        scanned = found(DATA[:size])
        assert good(DATA[:size]) == [
            offset for offset, end in zip((10, 12, 13), (SECOND, THIRD, END), strict=True) if end <= size
        ]
        start = max(border for border in (*STARTS, END) if border <= size)
        torn = [each for each in scanned if isinstance(each, Damage)]
        assert [each[:2] + each[3:] for each in torn] == [(start, size - start, True)] * (size != start), size


def test_a_file_shorter_than_it_should_be() -> None:
    """
    Where the file has fewer bytes than the scan was told of, it is torn there.
    """
    *batches, torn = found(DATA[:-1], END)
    assert len(batches) == 2
    assert isinstance(torn, Damage)
    assert (torn.position, torn.size, torn.torn) == (THIRD, END - THIRD, True)


@pytest.mark.parametrize("at", [SECOND + 23, THIRD - 1], ids=["how many offsets", "records"])
def test_behind_a_changed_batch_the_scan_goes_on(at: int) -> None:
    """
    A batch whose CRC does not hold is told of with its size, and those behind it are found, whatever it says of its
    offsets.
    """
    first, damage, last = found(changed(at, by=0x7F))
    assert isinstance(first, Batch)
    assert isinstance(last, Batch)
    reason = "the CRC of the batch is not that of its bytes"
    assert damage == Damage(SECOND, THIRD - SECOND, reason, False)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([PARTS[0], *laid(batch(1), first=11)], "a batch with the offsets 11 to 11, where 12 is next"),
        (
            [PARTS[0], *laid(sealed(batch(), last_offset_delta=-1), first=12)],
            "a batch with the offsets 12 to 11, where 12 is next",
        ),
        ([*laid(batch(1), first=9)], "a batch with the offsets 9 to 9, where 10 is next"),
    ],
    ids=["again", "no offsets", "before the segment"],
)
def test_offsets_that_cannot_be(parts: list[bytes], reason: str) -> None:
    """
    A batch that begins before the one in front of it ends is torn; so is one that has no offset.
    """
    damage = found(b"".join(parts))[-1]
    assert isinstance(damage, Damage)
    assert (damage.reason, damage.torn, damage.size) == (reason, True, len(parts[-1]))


def test_gaps_are_no_damage() -> None:
    """
    Between two batches offsets may be missing.
    """
    assert good(PARTS[0] + PARTS[2]) == [10, 13]


def test_pieces_are_checked() -> None:
    """
    What is damaged in a piece is told by where it is in the segment.
    """
    check(DATA[SECOND:], SECOND, FIRST_OFFSET + 6)
    with pytest.raises(Damaged, match=f"^at byte {THIRD}: the CRC of the batch"):
        check(changed(END - 1)[SECOND:], SECOND, FIRST_OFFSET + 6)
    with pytest.raises(Damaged, match=f"^at byte {THIRD}: a batch that ends with offset 15, before 15"):
        check(DATA[SECOND:], SECOND, FIRST_OFFSET + 5)


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
    assert is_unfinished(head, 12, left) is expected


def test_reads_that_need_the_disk(tmp_path: Path) -> None:
    """
    What is in the page cache comes into the same memory again and again, be it larger too; else nothing comes.
    """
    path = tmp_path / "file"
    path.write_bytes(DATA)
    file = LocalDisk().open(path)
    read = Scratch(HEADER_SIZE).source(file)
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
        Scratch(HEADER_SIZE).source(disk.open(path))(0, 1)
