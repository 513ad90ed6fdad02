"""
Rewritten segments, written beside the others.
"""

from contextlib import closing
from errno import ENOSPC
from pathlib import Path

import pytest

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.segments.cleaned_segment import SegmentWriter, cleaned_name
from kgateway.broker.log.segments.file_names import LOG
from kgateway.broker.log.segments.index import FIRST
from kgateway.broker.log.segments.segment import Segment
from kgateway.records.batch import Batch, batches
from tests.broker.behaviour import START_MS
from tests.broker.log.compaction.jobs import TOKEN, keyed
from tests.broker.log.recording_disk import RecordingDisk
from tests.records.crc_batches import sealed

NAME = "00000000000000000100"


def at(offset: int, count: int = 1, epoch: int = 0, timestamp: int = START_MS) -> Batch:
    return sealed(keyed(*[b"k"] * count, timestamp=timestamp), base_offset=offset, partition_leader_epoch=epoch)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def begun(disk: RecordingDisk, folder: Path, interval: int = 0) -> SegmentWriter:
    return SegmentWriter(disk, folder, 100, TOKEN, interval)


def ended(rewriting: SegmentWriter) -> int:
    """
    The final size.
    """
    with closing(rewriting):
        return rewriting.end(START_MS)


def spans(folder: Path) -> list[tuple[int, int, int, int]]:
    """
    First and last offset, epoch and number of records of each batch.
    """
    found = [batch.header for batch in batches((folder / cleaned_name(100, LOG, TOKEN)).read_bytes())]
    return [(one.base_offset, one.last_offset, one.partition_leader_epoch, one.records_count) for one in found]


def test_names(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    The names contain the segment and the round, and are not those of a segment.
    """
    rewriting = begun(disk, tmp_path)
    rewriting.keep(at(100))
    ended(rewriting)
    assert sorted(disk.names(tmp_path)) == [
        f"{NAME}{suffix}.token.cleaned" for suffix in (".index", ".log", ".timeindex")
    ]


def test_what_is_kept(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    Kept batches are written unchanged, and their size is returned.
    """
    kept = [at(100, 3), at(103)]
    rewriting = begun(disk, tmp_path)
    for batch in kept:
        rewriting.keep(batch)
    size = ended(rewriting)
    data = (tmp_path / f"{NAME}.log.token.cleaned").read_bytes()
    assert data == b"".join(bytes(batch.data) for batch in kept)
    assert len(data) == size


@pytest.mark.parametrize("gone", [[1], [1, 2], [0], [0, 1], [3], [2, 3], [0, 1, 2, 3], [0, 2]])
def test_one_batch_for_those_that_went(gone: list[int], disk: RecordingDisk, tmp_path: Path) -> None:
    """
    Each offset still belongs to a batch: removed neighbours become one batch without records, wherever they were.
    """
    rewriting = begun(disk, tmp_path)
    for number in range(4):
        batch = at(100 + 3 * number, 3)
        if number in gone:
            rewriting.leave_out(batch.header)
        else:
            rewriting.keep(batch)
    ended(rewriting)
    found = spans(tmp_path)
    assert [first for first, *_ in found] == [100, *(last + 1 for _, last, *_ in found[:-1])]
    assert found[-1][1] == 111
    runs = sum(number - 1 not in gone for number in gone)
    assert [count for *_, count in found].count(0) == runs
    assert len(found) == runs + 4 - len(gone)


def test_epochs_stay_apart(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    The batch that replaces those of one epoch does not cover those of the next.
    """
    rewriting = begun(disk, tmp_path)
    for number, epoch in enumerate((4, 4, 5, 5, 6)):
        rewriting.leave_out(at(100 + number, 1, epoch).header)
    ended(rewriting)
    assert spans(tmp_path) == [(100, 101, 4, 0), (102, 103, 5, 0), (104, 104, 6, 0)]


def test_what_was_missing_is_missing_still(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    Offsets without a batch, as after damage, get none.
    """
    rewriting = begun(disk, tmp_path)
    for offset in (100, 105, 106):
        rewriting.leave_out(at(offset).header)
    rewriting.keep(at(107))
    rewriting.leave_out(at(110).header)
    ended(rewriting)
    assert spans(tmp_path) == [(100, 100, 0, 0), (105, 106, 0, 0), (107, 107, 0, 1), (110, 110, 0, 0)]


def test_what_was_missing_before_all(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    Offsets between the base and the first batch get none either.
    """
    rewriting = begun(disk, tmp_path)
    rewriting.leave_out(at(103).header)
    ended(rewriting)
    assert spans(tmp_path) == [(103, 103, 0, 0)]


@pytest.mark.parametrize("interval", [0, 300])
def test_indexes_are_those_of_any_segment(interval: int, disk: RecordingDisk, tmp_path: Path) -> None:
    """
    They are byte for byte those of a segment to which the batches were appended, including the last time index entry.
    """
    written = [at(100 + 2 * n, 2, timestamp=START_MS + n * (-1) ** n) for n in range(20)]
    rewriting = begun(disk, tmp_path, interval)
    plain = Segment(FileCache(disk, 0), tmp_path, 100)
    plain._files.get(plain.path, create=True)
    for batch in written:
        rewriting.keep(batch)
        plain.append([batch.data], batch.header, batch.header.base_offset, interval)
    ended(rewriting)
    plain.seal()
    plain.indexes.save()
    assert len(plain.indexes.offsets) > 3
    assert plain.indexes.offsets.at_most(FIRST, 30)[0] > 0
    for suffix in (".log", ".index", ".timeindex"):
        expected = (tmp_path / f"{NAME}{suffix}").read_bytes()
        assert (tmp_path / f"{NAME}{suffix}.token.cleaned").read_bytes() == expected, suffix


def test_it_outlasts_the_machine(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    All three files are synced at the end, after their last write.
    """
    rewriting = begun(disk, tmp_path)
    rewriting.keep(at(100))
    assert not disk.count("sync")
    ended(rewriting)
    for suffix in (".log", ".index", ".timeindex"):
        mine = [done for done, name in disk.done if name == f"{NAME}{suffix}.token.cleaned"]
        assert mine[-2:] == ["append", "sync"], suffix
    assert not disk.opened


def test_large_segments_are_written_in_parts(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    At most about a megabyte is buffered.
    """
    rewriting = begun(disk, tmp_path)
    batch = keyed((b"k", bytes(300_000)))
    for number in range(10):
        rewriting.keep(sealed(batch, base_offset=100 + number))
    assert disk.count("append", ".cleaned") == 2
    assert ended(rewriting) == 10 * len(batch.data)
    assert [first for first, *_ in spans(tmp_path)] == list(range(100, 110))


def test_given_up(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    All its files are removed.
    """
    rewriting = begun(disk, tmp_path)
    rewriting.keep(at(100))
    rewriting.give_up()
    rewriting.close()
    assert not disk.names(tmp_path)
    assert not disk.opened


def test_full_disk(disk: RecordingDisk, tmp_path: Path) -> None:
    """
    Errors of the disk are raised.
    """
    rewriting = begun(disk, tmp_path)
    rewriting.keep(at(100))
    disk.failing["append"] = ENOSPC
    with pytest.raises(OSError, match="No space"):
        ended(rewriting)
