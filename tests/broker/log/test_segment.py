"""
A segment: what is indexed, and what is found by the indexes.
"""

from errno import ENOSPC
from pathlib import Path

import pytest

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.segment import Segment, largest_timestamp
from kgateway.records.batch import Batch
from tests.broker.behaviour import START_MS, at_times, batch
from tests.broker.log.fixtures import BASE, EVERY, SIZE, FreshSegment
from tests.broker.log.recording_disk import RecordingDisk
from tests.records.crc_batches import sealed


@pytest.fixture
def fresh(tmp_path: Path) -> FreshSegment:
    return FreshSegment(tmp_path)


def test_files_have_kafkas_names() -> None:
    """
    The name is the base offset in twenty digits.
    """
    assert file_name(1234, ".log") == "00000000000000001234.log"


def test_an_empty_segment(fresh: FreshSegment) -> None:
    """
    A new segment is loaded, ends where it begins, and has no timestamp.
    """
    segment = fresh.segment
    assert (segment.base_offset, segment.next_offset, segment.size) == (BASE, BASE, 0)
    assert segment.indexes.is_loaded
    assert segment.largest() == -1
    assert not segment.is_unchecked(0, 1)


def test_what_is_indexed(fresh: FreshSegment) -> None:
    """
    A batch gets an entry when more than the interval was appended since the previous one: its last offset and its
    position.
    """
    fresh.append(*[batch(2)] * 2, *[batch()] * 8, interval=2 * SIZE)
    fresh.segment.indexes.save()
    two = len(batch(2).data)
    assert fresh.entries(".index") == [(4, 2 * two), (7, 2 * two + 3 * SIZE), (10, 2 * two + 6 * SIZE)]


def test_times_are_indexed_as_they_grow(fresh: FreshSegment) -> None:
    """
    The time index gets an entry with each offset index entry if the largest timestamp has grown: the timestamp and
    the last offset of its batch. Without timestamps there is none.
    """
    fresh.append(at_times(-1), at_times(-1), at_times(10, 30), at_times(20), at_times(30), at_times(31))
    fresh.segment.indexes.save()
    assert fresh.entries(".timeindex") == [(30, 3), (31, 6)]
    assert len(fresh.entries(".index")) == 5


def test_a_sealed_segment_has_its_largest_time(fresh: FreshSegment) -> None:
    """
    The last entry of a full segment is its largest timestamp and the first batch that has it, even if none was
    indexed since.
    """
    fresh.append(at_times(50), at_times(70), at_times(60), at_times(70), interval=10_000)
    for _ in range(2):
        fresh.segment.seal()
    fresh.segment.indexes.save()
    assert (fresh.entries(".index"), fresh.entries(".timeindex")) == ([], [(70, 1)])


@pytest.mark.parametrize("interval", [EVERY, 200, 10_000])
def test_positions(interval: int, fresh: FreshSegment) -> None:
    """
    Each batch is found by all of its offsets, however many are indexed.
    """
    positions = list[int]()
    for number in range(12):
        positions += [fresh.segment.size] * (number % 3 + 1)
        fresh.append(batch(number % 3 + 1), interval=interval)
    assert [fresh.position(BASE + n) for n in range(len(positions))] == positions


def test_an_index_that_leads_astray(fresh: FreshSegment) -> None:
    """
    A batch is found even if the index has a wrong position; damage is reported only where the segment has it.
    """
    fresh.append(*[batch()] * 3, interval=10_000)
    fresh.segment.indexes.offsets.append(0, 5)
    assert fresh.position(BASE + 2) == 2 * SIZE
    (fresh.folder / file_name(BASE, ".log")).write_bytes(bytes(3 * SIZE))
    with pytest.raises(Damaged, match=r"^at byte 0"):
        fresh.position(BASE + 2)


def test_expected_reads_are_found_at_once(fresh: FreshSegment) -> None:
    """
    The next position of a few readers is remembered until a truncation.
    """
    fresh.append(*[batch()] * 3)
    fresh.segment.remember_position(BASE + 1, SIZE)
    before = fresh.disk.count("read_at")
    assert fresh.position(BASE + 1) == SIZE
    assert fresh.disk.count("read_at") == before
    for offset in range(1000, 1040):
        fresh.segment.remember_position(offset, 7)
    assert fresh.position(1039) == 7
    assert fresh.position(BASE + 1) == SIZE
    assert fresh.disk.count("read_at") == before + 1
    fresh.segment.cut(SIZE)
    assert fresh.position(1039) == SIZE


@pytest.mark.parametrize("kept", range(6))
def test_a_cut_leaves_no_trace(kept: int, fresh: FreshSegment, tmp_path: Path) -> None:
    """
    Everything is as if the truncated batches had never been there, including the density of the index, if the last
    batch before them was indexed.
    """
    sent = [at_times(START_MS + time) for time in (0, 9, 3, 7, 10, 20)]
    (tmp_path / "other").mkdir()
    other = FreshSegment(tmp_path / "other")
    fresh.append(*sent, interval=SIZE - 1)
    fresh.segment.cut(kept * SIZE)
    for each in (fresh, other):
        each.append(*sent[: kept if each is other else 0], *sent[3:], interval=SIZE - 1)
        each.segment.indexes.save()
    assert fresh.entries(".index") == other.entries(".index")
    assert fresh.entries(".timeindex") == other.entries(".timeindex")
    for name in ("size", "next_offset", "first_timestamp", "largest_timestamp", "largest_timestamp_offset"):
        assert getattr(fresh.segment, name) == getattr(other.segment, name), name


def test_where_to_look_for_a_time(fresh: FreshSegment) -> None:
    """
    A search begins behind all batches known to be older, and never behind one that is not.
    """
    fresh.append(*[at_times(time) for time in (10, 20, 15, 30, 5, 40)])
    assert [fresh.segment.position_of_time(time) for time in (0, 10, 20, 21, 30, 31, 40, 41, 99)] == [
        position * SIZE for position in (0, 0, 0, 1, 1, 3, 3, 5, 5)
    ]


def test_what_is_unchecked() -> None:
    """
    Only a read from the beginning of the unchecked part shortens it.
    """
    segment = Segment(FileCache(RecordingDisk(), 1), Path("x"), 0)
    segment.trust_files(100, 10)
    segment.checked(50, 70)
    assert segment.is_unchecked(0, 1)
    segment.checked(0, 40)
    assert [segment.is_unchecked(*part) for part in ((0, 40), (0, 41), (99, 120), (100, 120))] == [
        False,
        True,
        True,
        False,
    ]
    segment.checked(20, 120)
    assert not segment.is_unchecked(0, 100)


def test_early_writes(fresh: FreshSegment) -> None:
    """
    Each range of bytes is handed out once; after a truncation rewritten ranges are handed out again.
    """
    fresh.append(*[batch()] * 3)
    assert fresh.segment.write_early_part() == (0, 3 * SIZE)
    assert fresh.segment.written_early == 3 * SIZE
    fresh.segment.cut(SIZE)
    fresh.append(*[batch()] * 2)
    assert fresh.segment.write_early_part() == (SIZE, 2 * SIZE)


def test_failed_appends_leave_nothing(fresh: FreshSegment) -> None:
    """
    A batch that the disk refuses is in no index, and the next one takes its place.
    """
    fresh.append(batch())
    fresh.disk.failing["append"] = ENOSPC
    with pytest.raises(OSError, match="No space"):
        fresh.append(at_times(START_MS + 9))
    fresh.disk.failing.clear()
    assert (fresh.segment.size, fresh.segment.next_offset, fresh.segment.largest()) == (SIZE, BASE + 1, START_MS)
    fresh.append(batch())
    assert fresh.position(BASE + 1) == SIZE


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (at_times(10, 20), 20),
        (at_times(-1), -1),
        (sealed(at_times(10, 20), max_timestamp=15), 15),
        (sealed(at_times(10, 20), max_timestamp=9), (1 << 63) - 1),
        (sealed(at_times(10), max_timestamp=-1), (1 << 63) - 1),
        (at_times(10, log_append_time_ms=5), 5),
        (sealed(at_times(10), attributes=0x40, max_timestamp=5), 5),
    ],
    ids=["true", "none", "too small", "below the first", "none for some", "time of the append", "delete horizon"],
)
def test_largest_timestamps(sent: Batch, expected: int) -> None:
    """
    The header counts unless it is impossible.
    """
    assert largest_timestamp(sent.header) == expected
