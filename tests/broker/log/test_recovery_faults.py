"""
Recovery from damage, after a crash of the process and of the machine.
"""

from errno import ENOSPC
from pathlib import Path

import pytest

from kgateway.broker.log.recovery import truncation
from kgateway.broker.log.recovery.segment_recovery import KnownGood
from kgateway.broker.log.segments.file_names import file_name
from kgateway.records.batch import placed
from tests.broker.behaviour import START_MS, batch, sequenced
from tests.broker.log.fixtures import EITHER, LOG, SIZE, LeftLog, after_machine, after_process, nth

LAST = nth(10)
CRC = "the CRC of the batch does not match its contents"
LENGTH = 8  # where in a batch its length is


@pytest.fixture
def left(tmp_path: Path) -> LeftLog:
    return LeftLog(tmp_path / "t-0")


def beside(left: LeftLog) -> list[str]:
    return sorted(path.name for path in left.folder.glob("*.cut-*"))


@EITHER
def test_unfinished_batch_is_truncated(known_good: KnownGood, left: LeftLog) -> None:
    """
    The beginning of the next batch is cut off at any byte, and no copy is kept: it was never acknowledged.
    """
    buffers = b"".join(placed(sequenced(12), 12, 2))
    path = left.folder / LAST
    data = path.read_bytes()
    for size in range(1, SIZE):
        path.write_bytes(data + buffers[:size])
        found = left.open(known_good)
        assert found.segment_list.end_offset == 12, size
        assert found.faults == [f"{path}, byte {2 * SIZE}: truncated: a batch was being written"], size
        assert path.stat().st_size == 2 * SIZE, size
        assert left.disk.count("sync", LAST) == 1, size
    assert not beside(left)


@EITHER
def test_invalid_bytes_are_truncated_and_kept(known_good: KnownGood, left: LeftLog) -> None:
    """
    They follow the last batch.
    """
    path = left.folder / LAST
    with path.open("ab") as file:
        file.write(b"x" * 100)
    found = left.open(known_good)
    (fault,) = found.faults
    assert fault.startswith(f"{path}, byte {2 * SIZE}: a batch of 2021161092 bytes, with 100 left; truncated")
    assert fault.endswith(f"{LAST}.cut-{2 * SIZE} has the 100 bytes from there on")
    assert (left.folder / f"{LAST}.cut-{2 * SIZE}").read_bytes() == b"x" * 100
    assert (found.segment_list.end_offset, path.stat().st_size) == (12, 2 * SIZE)


def test_what_is_kept_takes_the_place_of_what_was(left: LeftLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What was once cut off at the same byte does not get longer; copies go piece by piece.
    """
    monkeypatch.setattr(truncation, "_COPIED_AT_ONCE", 30)
    kept, junk = left.folder / f"{LAST}.cut-{2 * SIZE}", bytes(range(100, 170))
    kept.write_bytes(b"y" * 500)
    with (left.folder / LAST).open("ab") as file:
        file.write(junk)
    left.open(after_machine())
    assert kept.read_bytes() == junk
    assert all(file.path != kept for file in left.disk.opened)


def test_damaged_batch_is_skipped_after_a_process_crash(left: LeftLog) -> None:
    """
    Good batches behind it were acknowledged, so it is skipped and not returned; its offsets are not reused.
    """
    left.change(3 * SIZE - 1)
    found = left.open(after_process(0))
    assert found.faults == [f"{left.folder / LOG}, byte {2 * SIZE}: {CRC}; skipped: readers get CORRUPT_MESSAGE"]
    first = found.segment_list.segments[0]
    assert (found.segment_list.end_offset, first.next_offset, first.size) == (12, 5, 5 * SIZE)
    assert first.is_unchecked(0, 1)
    assert not beside(left)
    assert [written.base_offset for written in found.producers.producers[7].window] == [7, 8, 9, 10, 11]


def test_damaged_batch_ends_the_log_after_a_power_cut(left: LeftLog) -> None:
    """
    Reads must return a prefix of what was written: everything behind the damage is kept aside, whole segments too.
    """
    left.settle()
    left.change(3 * SIZE - 1)
    found = left.open(after_machine())
    assert (found.segment_list.end_offset, [segment.base_offset for segment in found.segment_list.segments]) == (2, [0])
    cut, first, second = found.faults
    kept = f"{LOG}.cut-{2 * SIZE}"
    assert cut == (
        f"{left.folder / LOG}, byte {2 * SIZE}: {CRC}; truncated; {kept} has the {3 * SIZE} bytes from there on"
    )
    missing = "the records before this segment are missing; the segment is kept as"
    assert first == f"{left.folder / nth(5)}: {missing} {nth(5)}.cut-0"
    assert second == f"{left.folder / LAST}: {missing} {LAST}.cut-0"
    assert beside(left) == [kept, f"{nth(5)}.cut-0", f"{LAST}.cut-0"]
    assert [len((left.folder / name).read_bytes()) for name in beside(left)] == [3 * SIZE, 5 * SIZE, 2 * SIZE]
    assert not (left.folder / file_name(5, ".index")).exists()
    assert not (left.folder / file_name(5, ".timeindex")).exists()
    assert left.opened.producers.producers[7].window[-1].base_offset == 1


def test_synced_segments_behind_damage_are_kept(left: LeftLog) -> None:
    """
    Even after a power cut only the damaged batch of a synced part is lost.
    """
    left.settle()
    left.change(3 * SIZE - 1)
    (left.folder / file_name(0, ".index")).unlink()
    found = left.open(after_machine(12))
    assert [segment.base_offset for segment in found.segment_list.segments] == [0, 5, 10]
    assert found.segment_list.end_offset == 12


@EITHER
def test_damage_in_the_last_batch_ends_the_log(known_good: KnownGood, left: LeftLog) -> None:
    """
    No good batch follows, so it is cut off and kept aside.
    """
    left.change(SIZE, LAST, by=0)
    left.change(2 * SIZE - 1, LAST)
    found = left.open(known_good)
    assert found.segment_list.end_offset == 11
    assert beside(left) == [f"{LAST}.cut-{SIZE}"]
    left.append(sequenced(11))
    assert left.open(known_good).segment_list.end_offset == 12


def test_damage_at_the_end_of_a_full_segment(left: LeftLog) -> None:
    """
    After a process crash it is skipped, because the next segment follows.
    """
    left.change(5 * SIZE - 1)
    found = left.open(after_process(0))
    assert found.faults == [f"{left.folder / LOG}, byte {4 * SIZE}: {CRC}; skipped: readers get CORRUPT_MESSAGE"]
    assert (found.segment_list.segments[0].next_offset, found.segment_list.end_offset) == (5, 12)


@pytest.mark.parametrize("second", [3 * SIZE - 1, 2 * SIZE + LENGTH], ids=["CRC", "torn"])
def test_adjacent_damaged_batches_are_skipped_together(second: int, left: LeftLog) -> None:
    """
    The next good batch is found behind both.
    """
    left.change(2 * SIZE - 1)
    left.change(second)
    found = left.open(after_process(0))
    assert [(segment.next_offset, segment.size) for segment in found.segment_list.segments[:2]] == [
        (5, 5 * SIZE),
        (10, 5 * SIZE),
    ]
    assert [fault.partition(", ")[2].partition(":")[0] for fault in found.faults] == [f"byte {SIZE}"]
    assert (beside(left), found.segment_list.end_offset) == ([], 12)


@EITHER
@pytest.mark.parametrize("told", [9, 11 + 256])
def test_a_changed_offset(told: int, known_good: KnownGood, left: LeftLog) -> None:
    """
    No CRC covers the offset of a batch, but the next one tells what it was: nothing is missing, whoever has died, and
    only that batch is passed over.
    """
    left.append(sequenced(12))
    left.change(SIZE + 6, LAST, by=told >> 8)
    left.change(SIZE + 7, LAST, by=11 ^ told & 0xFF)
    found = left.open(known_good)
    where = f"a batch with the offsets {told} to {told}, where 11 is next; skipped: readers get CORRUPT_MESSAGE"
    assert [fault.partition(f"byte {SIZE}: ")[2] for fault in found.faults] == [where]
    assert (found.segment_list.end_offset, beside(left)) == (13, [])


@EITHER
@pytest.mark.parametrize("number", [10, 11, 12])
def test_a_changed_leader_epoch(number: int, known_good: KnownGood, left: LeftLog) -> None:
    """
    One that has not begun yet is none, and the batch is passed over, be it the last one too.
    """
    left.append(sequenced(12))
    at = (number - 10) * SIZE
    left.change(at + 12, LAST)
    found = left.open(known_good)
    where = (
        f"{left.folder / LAST}, byte {at}: leader epoch {(0xFF << 24) - (1 << 32) + 2}, although 100 begins only now"
    )
    assert found.faults == [f"{where}; skipped: readers get CORRUPT_MESSAGE"]
    assert (found.segment_list.end_offset, beside(left)) == (13, [])
    assert found.epochs.last == 2


@EITHER
@pytest.mark.parametrize("count", [1, 2])
def test_a_leader_epoch_that_is_too_large(count: int, known_good: KnownGood, left: LeftLog) -> None:
    """
    One that may have been is believed, until two batches behind it tell a smaller one.
    """
    for number in range(12, 13 + count):
        left.append(sequenced(number))
    left.change(2 * SIZE + 15, LAST, by=64)
    assert left.open(known_good).epochs.last == (66 if count == 1 else 2)


def test_two_changed_offsets(left: LeftLog) -> None:
    """
    No batch behind the first tells what it was, but a good one behind both tells where the log goes on; after the death
    of the machine the log ends before them.
    """
    for number in (12, 13):
        left.append(sequenced(number))
    for at, told in ((SIZE, 11), (2 * SIZE, 12)):
        left.change(at + 7, LAST, by=told ^ 9)
    found = left.open(after_process(0))
    assert (found.segment_list.end_offset, beside(left)) == (14, [])
    found = left.open(after_machine())
    assert (found.segment_list.end_offset, beside(left)) == (11, [f"{LAST}.cut-{SIZE}"])


def test_separate_damaged_batches_are_skipped_one_by_one(left: LeftLog) -> None:
    """
    With a good batch between them both are logged.
    """
    left.change(2 * SIZE - 1)
    left.change(4 * SIZE - 1)
    found = left.open(after_process(0))
    assert [fault.partition(", ")[2] for fault in found.faults] == [
        f"byte {at}: {CRC}; skipped: readers get CORRUPT_MESSAGE" for at in (SIZE, 3 * SIZE)
    ]
    assert found.segment_list.end_offset == 12


def test_damage_in_what_was_settled(left: LeftLog) -> None:
    """
    The batch of the last entry of the index is looked at again. Where it is damaged, and the last, it is kept, and
    nobody else gets its offset: it was there.
    """
    left.append(sequenced(12))
    left.append(sequenced(13))
    settled = left.settle()
    left.cut(4 * SIZE - 1, LAST)
    found = left.open(after_process(settled))
    last, fresh = found.segment_list.segments[-2:]
    assert (last.indexes.last_time, last.size) == ((START_MS, 0), 3 * SIZE)
    assert (fresh.base_offset, found.segment_list.end_offset, found.segment_list.segment_of(13)) == (14, 14, fresh)
    cut, missing = found.faults
    assert cut.endswith(f"; truncated; {beside(left)[0]} has the {SIZE - 1} bytes from there on")
    assert missing.endswith(f"{LAST}: offsets 13 to 13 are missing after it; consumers continue from 14")
    left.append(sequenced(14))
    assert left.open(after_process(settled)).segment_list.end_offset == 15


def test_times_of_what_was_cut_are_forgotten(left: LeftLog) -> None:
    """
    What the time index tells of batches that the offset index does not reach is told by the batches, if they are there.
    """
    settled = left.settle()
    for later in (5, 9):
        left.append(batch(timestamp=START_MS + later))
    left.disk.failing["append .index"] = ENOSPC
    with pytest.raises(OSError, match="No space"):
        left.opened.segment_list.save_indexes()
    left.cut(2 * SIZE + 30, LAST)
    last = left.open(after_process(settled)).segment_list.segments[-1]
    assert (last.next_offset, len(last.indexes.times), last.largest()) == (12, 0, START_MS)


def test_truncated_damage_is_not_found_again(left: LeftLog) -> None:
    """
    The next start finds an intact log.
    """
    left.change(SIZE - 1, LAST)
    left.open(after_machine())
    left.settle()
    assert left.open(after_machine()).faults == []


@EITHER
def test_an_index_that_is_not_of_this_log(known_good: KnownGood, left: LeftLog) -> None:
    """
    Indexes are believed only where the batch of their last entry is the one they say; else they are made again.
    """
    settled = left.settle()
    known_good = known_good._replace(settled=settled if known_good.nothing_missing else 0)
    index = left.folder / file_name(10, ".index")
    for data in (
        b"\0\0\0\1\0\0\0\5",
        b"\0\0\0\0\0\0\0\x4c",
        b"\0\0\0\1\0\0\xff\xff",
        b"\0\0\0\1\xff\xff\xff\xff",
        b"x" * 21,
    ):
        index.write_bytes(data)
        found = left.open(known_good)
        assert (found.segment_list.end_offset, found.faults) == (12, []), data
        assert len(found.segment_list.segments[-1].indexes.offsets) == 0, data
        left.settle()
        assert index.read_bytes() == b"", data


def test_truncation_is_synced(left: LeftLog) -> None:
    """
    Otherwise a part of a segment, or a whole one, would reappear behind the next batches.
    """
    left.change(SIZE - 1, nth(5))
    left.open(after_machine())
    done = [(what, name) for what, name in left.disk.done if what in ("truncate", "sync", "rename", "sync_folder")]
    cut = f"{nth(5)}.cut-0"
    moved = [("truncate", cut), ("sync", cut), ("sync_folder", "t-0"), ("truncate", nth(5)), ("sync", nth(5))]
    start = done.index(moved[0])
    assert done[start : start + 5] == moved
    start = done.index(("rename", LAST))
    assert done[start + 1] == ("sync_folder", "t-0")
    left.append(sequenced(5))
    left.cut(SIZE - 1, nth(5))
    left.open(after_machine())
    assert [what for what, name in left.disk.done if name == nth(5)][-2:] == ["truncate", "sync"]
