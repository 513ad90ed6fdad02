"""
Which leader epoch begins where, by Kafka's rules.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.epochs import Epochs
from kgateway.cluster.partition import EpochEnd

LOG_END = 60


def epochs(*assigned: tuple[int, int]) -> Epochs:
    """
    Epochs that were assigned one after the other.
    """
    found = Epochs()
    for epoch, offset in assigned:
        found.assign(epoch, offset)
    return found


def lines(found: Epochs) -> list[str]:
    """
    What the file has behind version and count.
    """
    return found.written().decode().splitlines()[2:]


THREE = epochs((0, 0), (3, 20), (5, 40))


def test_file_is_as_kafka_writes_it() -> None:
    """
    A version, how many lines follow, and lines of an epoch and its first offset.
    """
    assert THREE.written() == b"0\n3\n0 0\n3 20\n5 40\n"
    assert Epochs().written() == b"0\n0\n"


def test_each_epoch_is_assigned_once() -> None:
    """
    An epoch begins where it is first seen; neither it nor an older one begins again.
    """
    found = epochs((2, 5))
    assert found.assign(3, 8)
    assert not found.assign(3, 9)
    assert not found.assign(2, 9)
    assert lines(found) == ["2 5", "3 8"]


def test_an_epoch_without_records_leaves_no_line() -> None:
    """
    An epoch takes the place of those that begin where it does.
    """
    assert lines(epochs((0, 0), (1, 7), (2, 7), (3, 7))) == ["0 0", "3 7"]
    assert lines(epochs((0, 0), (4, 0))) == ["4 0"]


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (0, EpochEnd(0, 20)),
        (1, EpochEnd(0, 20)),
        (3, EpochEnd(3, 40)),
        (4, EpochEnd(3, 40)),
        (5, EpochEnd(5, LOG_END)),
        (6, None),
        (-1, None),
    ],
)
def test_ends(epoch: int, end: EpochEnd | None) -> None:
    """
    An epoch ends where the next begins, and the current one with the log; one that is missing ends with the one before
    it; of later ones nothing is known.
    """
    assert THREE.end(epoch, LOG_END) == end


def test_end_of_an_epoch_before_all() -> None:
    """
    An epoch older than all that are known has no records: it ends where those begin.
    """
    assert epochs((3, 20)).end(1, LOG_END) == EpochEnd(1, 20)


def test_nothing_is_known() -> None:
    """
    A log without epochs knows of no end.
    """
    assert Epochs().end(0, 0) is None


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (1, 1), (20, 1), (21, 2), (40, 2), (41, 3)])
def test_cut(offset: int, kept: int) -> None:
    """
    Epochs that begin where the log now ends, or behind it, are forgotten.
    """
    found = epochs((0, 0), (3, 20), (5, 40))
    found.cut(offset)
    assert lines(found) == ["0 0", "3 20", "5 40"][:kept]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=9))
def test_what_is_written_is_read(steps: list[tuple[int, int]]) -> None:
    """
    The file brings back the same epochs, whatever was there before.
    """
    offset, before = 0, Epochs()
    for epoch, more in steps:
        before.assign(epoch, offset)
        offset += more
    after = epochs((100, 100))
    assert after.read(before.written())
    assert after.written() == before.written()
    assert [after.end(n, offset) for n in range(100)] == [before.end(n, offset) for n in range(100)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"0\n",
        b"1\n1\n0 0\n",
        b"0\n2\n0 0\n",
        b"0\n1\n0 0\n3 20\n",
        b"0\n1\n0 x\n",
        b"0\n1\n0 0",
        b"\xff\n0\n",
    ],
    ids=repr,
)
def test_damaged_files_say_nothing(data: bytes) -> None:
    """
    A file that is cut, or of another version, changes nothing.
    """
    found = epochs((2, 5))
    assert not found.read(data)
    assert lines(found) == ["2 5"]


def test_a_file_cut_anywhere_says_nothing() -> None:
    """
    No beginning of a file is taken for all of it.
    """
    data = THREE.written()
    assert [size for size in range(len(data) + 1) if Epochs().read(data[:size])] == [len(data)]
