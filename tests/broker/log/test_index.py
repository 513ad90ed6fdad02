"""
The sparse indexes of a segment.
"""

import pytest

from kgateway.broker.log.segments.index import FIRST, OFFSETS, SECOND, TIMES, Index

ROWS = [(3, 100), (7, 250), (12, 400)]


def index(*rows: tuple[int, int]) -> Index:
    """
    An offset index with these entries.
    """
    found = Index(OFFSETS)
    for row in rows:
        found.append(*row)
    return found


def rows(found: Index) -> list[tuple[int, int]]:
    return [found.entry(number) for number in range(len(found))]


def test_entries_are_as_kafka_writes_them() -> None:
    """
    Offset and position have four bytes each, a timestamp eight, the most significant byte first.
    """
    assert index((1, 258)).unsaved() == b"\0\0\0\1\0\0\1\2"
    times = Index(TIMES)
    times.append(1 << 40, 5)
    assert times.unsaved() == b"\0\0\1\0\0\0\0\0\0\0\0\5"


def test_entries_are_found_by_their_number() -> None:
    """
    Entries are counted from 0, and the last is -1, too.
    """
    found = index(*ROWS)
    assert [found.entry(number) for number in (0, 1, 2, -1)] == [*ROWS, ROWS[-1]]
    assert len(found) == 3


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (FIRST, 2, (0, 0)),
        (FIRST, 3, ROWS[0]),
        (FIRST, 6, ROWS[0]),
        (FIRST, 7, ROWS[1]),
        (FIRST, 1000, ROWS[2]),
        (SECOND, 99, (0, 0)),
        (SECOND, 250, ROWS[1]),
        (SECOND, 399, ROWS[1]),
    ],
)
def test_last_entry_that_is_not_larger(field: int, value: int, expected: tuple[int, int]) -> None:
    """
    Either field can be searched; before the first entry the result is zeros.
    """
    assert index(*ROWS).at_most(field, value) == expected


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [(FIRST, 0, 0), (FIRST, 3, 0), (FIRST, 4, 1), (FIRST, 12, 2), (FIRST, 13, 3), (SECOND, 250, 1), (SECOND, 251, 2)],
)
def test_cut(field: int, value: int, kept: int) -> None:
    """
    Entries at the value or above are removed.
    """
    found = index(*ROWS)
    found.cut(field, value)
    assert rows(found) == ROWS[:kept]


def test_files_are_read_as_far_as_entries_are_whole() -> None:
    """
    Half an entry at the end of a file is ignored.
    """
    data = index(*ROWS).unsaved()
    for size in range(len(data) + 1):
        found = Index(OFFSETS, data[:size])
        assert rows(found) == ROWS[: size // 8], size
        assert (found.saved_bytes, found.unsaved()) == (size // 8 * 8, b""), size


def test_what_the_file_lacks() -> None:
    """
    Entries added since the file was read are to be saved, earlier ones are not.
    """
    found = Index(OFFSETS, index(*ROWS[:2]).unsaved())
    assert found.is_saved
    found.append(*ROWS[2])
    assert (found.is_saved, found.unsaved()) == (False, index(ROWS[2]).unsaved())


def test_a_new_index_is_to_be_saved() -> None:
    """
    An index without entries has a file, too.
    """
    assert not Index(OFFSETS).is_saved


def test_what_was_cut_is_still_in_the_file() -> None:
    """
    After a truncation into the saved part the file is too long; one behind it leaves the file as it should be.
    """
    found = Index(OFFSETS, index(*ROWS).unsaved())
    found.cut(FIRST, 13)
    assert (found.is_saved, found.saved_bytes) == (True, 24)
    found.cut(FIRST, 7)
    assert (found.is_saved, found.saved_bytes, found.unsaved()) == (False, 8, b"")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], True),
        ([(0, 0)], True),
        (ROWS, True),
        ([(3, 100), (3, 250)], True),
        ([(3, 100), (7, 100)], False),
        ([(3, 100), (2, 250)], False),
        ([(-1, 5)], False),
        ([(5, -1)], False),
    ],
    ids=str,
)
def test_what_an_index_can_be(entries: list[tuple[int, int]], expected: bool) -> None:
    """
    Positions increase, the other field never decreases, and nothing is negative.
    """
    assert all(index(*entries).check_order()) is expected
