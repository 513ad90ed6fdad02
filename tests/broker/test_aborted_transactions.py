"""
The index of aborted transactions, in memory and as a file.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.partition.transactions import (
    AbortedTransaction,
    AbortedTransactions,
    checked_aborted,
    decode_aborted,
    encode_aborted,
)

Rows = list[AbortedTransaction]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """
    Transactions of three producers with one open at a time each, in the order in which they ended.
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
def test_transactions_that_overlap_a_range_are_found(rows: Rows, place: list[int]) -> None:
    """
    Exactly those are found.
    """
    start, end = place
    found = AbortedTransactions(rows).reaching(start, end)
    assert found == [one for one in rows if one.last_offset >= start and one.first_offset < end]


@given(rows(), PLACES, st.integers(0, 3))
def test_replacing_a_range_keeps_the_named_transactions(rows: Rows, place: list[int], left: int) -> None:
    """
    Of those that ended in the range only the named ones are left.
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
def test_files_are_read_back(rows: Rows) -> None:
    """
    A file in another format is not read.
    """
    data = encode_aborted(rows)
    assert list(decode_aborted(data)) == checked_aborted(data, 0) == rows
    assert len(data) == 34 * len(rows)
    assert list(decode_aborted(data + b"\0\0part")) == rows
    assert checked_aborted(data + b"\0\0part", 0) is None
    if rows:
        assert checked_aborted(b"\0\1" + data[2:], 0) is None
        assert checked_aborted(data, rows[0].last_offset + 1) is None
        wrong = [rows[0]._replace(first_offset=-1), rows[0]._replace(first_offset=rows[0].last_offset)]
        wrong += [rows[0]._replace(last_stable=stable) for stable in (-1, rows[0].last_offset + 2)]
        assert [checked_aborted(encode_aborted([one, *rows[1:]]), 0) for one in wrong] == [None] * 4
        assert checked_aborted(data, 0, rows[-1].last_offset) is None
    if len(rows) > 1:
        assert checked_aborted(encode_aborted(reversed(rows)), 0) is None
