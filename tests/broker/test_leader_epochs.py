"""
Where leader epochs begin and end, by Kafka's rules.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.cluster.partition import EpochEnd

LOG_END = 60


def epochs(*assigned: tuple[int, int]) -> LeaderEpochs:
    """
    Epochs assigned one after the other.
    """
    found = LeaderEpochs()
    for epoch, offset in assigned:
        found.assign(epoch, offset)
    return found


def lines(found: LeaderEpochs) -> list[str]:
    """
    The lines of the file behind version and count.
    """
    return found.encoded().decode().splitlines()[2:]


THREE = epochs((0, 0), (3, 20), (5, 40))


def test_the_file_has_kafkas_format() -> None:
    """
    It has a version, the number of lines, and one line with epoch and start offset each.
    """
    assert THREE.encoded() == b"0\n3\n0 0\n3 20\n5 40\n"
    assert LeaderEpochs().encoded() == b"0\n0\n"


def test_each_epoch_is_assigned_once() -> None:
    """
    An epoch begins where it first appears; neither it nor an older one begins a second time.
    """
    found = epochs((2, 5))
    assert found.assign(3, 8)
    assert not found.assign(3, 9)
    assert not found.assign(2, 9)
    assert lines(found) == ["2 5", "3 8"]


def test_an_epoch_without_records_is_replaced() -> None:
    """
    A later epoch with the same start offset replaces it.
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
def test_epoch_ends(epoch: int, end: EpochEnd | None) -> None:
    """
    An epoch ends where the next begins, and the current one with the log; a missing epoch ends with its predecessor,
    and later epochs are unknown.
    """
    assert THREE.end(epoch, LOG_END) == end


def test_an_epoch_older_than_all_has_no_records() -> None:
    """
    It ends where the oldest known epoch begins.
    """
    assert epochs((3, 20)).end(1, LOG_END) == EpochEnd(1, 20)


def test_a_log_without_epochs_knows_no_end() -> None:
    assert LeaderEpochs().end(0, 0) is None


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (1, 1), (20, 1), (21, 2), (40, 2), (41, 3)])
def test_truncation_forgets_epochs(offset: int, kept: int) -> None:
    """
    Epochs that begin at or behind the new log end are dropped.
    """
    found = epochs((0, 0), (3, 20), (5, 40))
    found.cut(offset)
    assert lines(found) == ["0 0", "3 20", "5 40"][:kept]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=9))
def test_the_file_is_read_back(steps: list[tuple[int, int]]) -> None:
    """
    The epochs of the file replace those in memory.
    """
    offset, before = 0, LeaderEpochs()
    for epoch, more in steps:
        before.assign(epoch, offset)
        offset += more
    after = epochs((100, 100))
    assert after.read(before.encoded())
    assert after.encoded() == before.encoded()
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
def test_damaged_files_change_nothing(data: bytes) -> None:
    """
    A truncated file or one of another version is ignored.
    """
    found = epochs((2, 5))
    assert not found.read(data)
    assert lines(found) == ["2 5"]


def test_truncated_files_are_ignored() -> None:
    """
    No prefix of a file is mistaken for all of it.
    """
    data = THREE.encoded()
    assert [size for size in range(len(data) + 1) if LeaderEpochs().read(data[:size])] == [len(data)]
