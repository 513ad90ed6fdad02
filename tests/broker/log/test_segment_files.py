"""
The files of a segment's indexes.
"""

from errno import ENOSPC
from pathlib import Path

import pytest

from kgateway.broker.log.index import Index
from kgateway.broker.log.segment import Segment, file_name
from tests.broker.behaviour import at_times
from tests.broker.log.fresh import BASE, SIZE, Fresh


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    return Fresh(tmp_path)


def test_what_files_lack_is_appended(fresh: Fresh) -> None:
    """
    Saving writes only what is new, times first, and nothing where nothing is. A file of times is never alone: Kafka's
    tools want both.
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


def test_a_failed_save_is_made_good(fresh: Fresh) -> None:
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


def test_files_with_too_much_are_cut(fresh: Fresh) -> None:
    """
    What an older file has behind the index is not kept.
    """
    for suffix in (".index", ".timeindex"):
        (fresh.folder / file_name(BASE, suffix)).write_bytes(b"x" * 50)
    fresh.append(*[at_times(n) for n in range(2)])
    fresh.segment.indexes.save()
    assert (fresh.entries(".index"), fresh.entries(".timeindex")) == ([(1, SIZE)], [(1, 1)])


def test_indexes_are_let_go_and_read_again(fresh: Fresh) -> None:
    """
    Only an index that its file has is let go; it is read when it is next asked for.
    """
    fresh.append(*[at_times(n) for n in range(3)])
    fresh.segment.indexes.let_go()
    assert fresh.segment.indexes.is_loaded
    fresh.segment.indexes.save()
    fresh.segment.indexes.let_go()
    assert not fresh.segment.indexes.is_loaded
    assert fresh.position(BASE + 2) == 2 * SIZE
    fresh.append(at_times(3))
    fresh.segment.indexes.save()
    assert fresh.entries(".index") == [(n, n * SIZE) for n in range(1, 4)]


def test_an_index_taken_over_is_used(fresh: Fresh) -> None:
    """
    A full segment of an earlier process is read with the indexes that its files have, and is unchecked.
    """
    fresh.append(*[at_times(n) for n in range(4)])
    fresh.segment.indexes.save()
    other = Segment(fresh.files, fresh.folder, BASE)
    other.take_over(4 * SIZE, BASE + 4)
    assert not other.indexes.is_loaded
    assert (other.largest(), other.position_of_time(3), other.next_offset) == (3, 2 * SIZE, BASE + 4)
    assert other.is_unchecked(0, 1)
    assert isinstance(other.indexes.offsets, Index)
