"""
Which transactions were aborted, in memory and as a file.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.aborted import AbortedTransaction, AbortedTransactions, read, sound, written

Rows = list[AbortedTransaction]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """
    Transactions of three producers, each of which has one at a time, as a log ends them.
    """
    began: dict[int, int] = {}
    found = Rows()
    for offset in range(draw(st.integers(0, 40))):
        producer = draw(st.integers(1, 3))
        if producer not in began:
            began[producer] = offset
        elif draw(st.booleans()):
            first = began.pop(producer)
            found.append(AbortedTransaction(producer, first, offset, min(began.values(), default=offset + 1)))
    return found


PLACES = st.tuples(st.integers(0, 45), st.integers(0, 45)).map(sorted)


@given(rows(), PLACES)
def test_those_that_reach_into_a_range(rows: Rows, place: list[int]) -> None:
    """
    All of them, and only these.
    """
    start, end = place
    found = AbortedTransactions(rows).reaching(start, end)
    assert found == [one for one in rows if one.last_offset >= start and one.first_offset < end]


@given(rows(), PLACES, st.integers(0, 3))
def test_replacing(rows: Rows, place: list[int], left: int) -> None:
    """
    Of those that ended in a range only some are left.
    """
    start, end = place
    table = AbortedTransactions(rows)
    within = [one for one in rows if start <= one.last_offset < end]
    assert table.ended_between(start, end) == within
    table.replace(start, end, within[:left])
    expected = [one for one in rows if one not in within[left:]]
    assert table == AbortedTransactions(expected)
    assert len(table) == len(expected)
    table.begin_at(start)
    assert table == AbortedTransactions(one for one in expected if one.last_offset >= start)


@given(rows())
def test_files(rows: Rows) -> None:
    """
    What was written is read; what is no such file is not.
    """
    data = written(rows)
    assert list(read(data)) == sound(data, 0) == rows
    assert len(data) == 34 * len(rows)
    assert list(read(data + b"\0\0part")) == rows
    assert sound(data + b"\0\0part", 0) is None
    if rows:
        assert sound(b"\0\1" + data[2:], 0) is None
        assert sound(data, rows[0].last_offset + 1) is None
        wrong = [rows[0]._replace(first_offset=-1), rows[0]._replace(first_offset=rows[0].last_offset)]
        wrong += [rows[0]._replace(last_stable=stable) for stable in (-1, rows[0].last_offset + 2)]
        assert [sound(written([one, *rows[1:]]), 0) for one in wrong] == [None] * 4
        assert sound(data, 0, rows[-1].last_offset) is None
    if len(rows) > 1:
        assert sound(written(reversed(rows)), 0) is None
