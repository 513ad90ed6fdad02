"""
The index files of a segment.
"""

from errno import ENOSPC
from pathlib import Path

import pytest

from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.index import Index
from kgateway.broker.log.segments.segment import Segment
from tests.broker.behaviour import at_times
from tests.broker.log.fixtures import BASE, SIZE, FreshSegment


@pytest.fixture
def fresh(tmp_path: Path) -> FreshSegment:
    return FreshSegment(tmp_path)


def test_what_files_lack_is_appended(fresh: FreshSegment) -> None:
    """
    Saving writes only new entries, times first, and nothing if there are none. A time index never stands alone,
    because Kafka's tools need both.
    """
    fresh.append(*[at_times(n) for n in range(3)])
    del fresh.disk.done[:]
    fresh.segment.indexes.save()
    offsets, times = file_name(BASE, ".index"), file_name(BASE, ".timeindex")
    assert fresh.disk.done == [("open", offsets), ("open", times), ("append", times), ("append", offsets)]
    fresh.segment.indexes.save()
    fresh.append(*[at_times(n) for n in range(3, 5)])
    fresh.segment.indexes.save()
    assert fresh.entries(".index") == [(n, n * SIZE) for n in range(1, 5)]
    assert fresh.entries(".timeindex") == [(n, n) for n in range(1, 5)]
    assert fresh.disk.count("append", ".index") == 2
    assert fresh.disk.count("truncate") == 0


def test_a_failed_save_is_made_good(fresh: FreshSegment) -> None:
    """
    What could not be written is written the next time, once.
    """
    fresh.append(*[at_times(n) for n in range(3)])
    fresh.disk.failing["append .index"] = ENOSPC
    with pytest.raises(OSError, match="No space"):
        fresh.segment.indexes.save()
    fresh.disk.failing.clear()
    fresh.append(at_times(3))
    fresh.segment.indexes.save()
    assert fresh.entries(".index") == [(n, n * SIZE) for n in range(1, 4)]
    assert {file.path.suffix for file in fresh.disk.opened} == {".log"}


def test_files_with_too_much_are_cut(fresh: FreshSegment) -> None:
    """
    Entries of an older file behind those of the index are removed.
    """
    for suffix in (".index", ".timeindex"):
        (fresh.folder / file_name(BASE, suffix)).write_bytes(b"x" * 50)
    fresh.append(*[at_times(n) for n in range(2)])
    fresh.segment.indexes.save()
    assert (fresh.entries(".index"), fresh.entries(".timeindex")) == ([(1, SIZE)], [(1, 1)])


def test_indexes_are_let_go_and_read_again(fresh: FreshSegment) -> None:
    """
    Only an index that is saved is freed; it is read again when it is needed.
    """
    fresh.append(*[at_times(n) for n in range(3)])
    fresh.segment.indexes.unload()
    assert fresh.segment.indexes.is_loaded
    fresh.segment.indexes.save()
    fresh.segment.indexes.unload()
    assert not fresh.segment.indexes.is_loaded
    assert fresh.position(BASE + 2) == 2 * SIZE
    fresh.append(at_times(3))
    fresh.segment.indexes.save()
    assert fresh.entries(".index") == [(n, n * SIZE) for n in range(1, 4)]


def test_an_index_taken_over_is_used(fresh: FreshSegment) -> None:
    """
    A full segment of an earlier process is read with the indexes in its files, and is unchecked.
    """
    fresh.append(*[at_times(n) for n in range(4)])
    fresh.segment.indexes.save()
    other = Segment(fresh.files, fresh.folder, BASE)
    other.trust_files(4 * SIZE, BASE + 4)
    assert not other.indexes.is_loaded
    assert (other.largest(), other.position_of_time(3), other.next_offset) == (3, 2 * SIZE, BASE + 4)
    assert other.is_unchecked(0, 1)
    assert isinstance(other.indexes.offsets, Index)
